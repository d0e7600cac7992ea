"""Runs a callable that a mask check is about, in its own precision and in float64."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from transformer_viz.errors import OptionError
from transformer_viz.mask_checks.changes import TOLERANCES, Rows, name_of
from transformer_viz.mask_checks.float64_mode import Float64Mode, coarser, rounded
from transformer_viz.mask_checks.result import Precision, Tolerance

Logits = Callable[[Tensor, Tensor], Any]

_NO_FLOAT64 = "one of its functions knows no float64"
_FAITHFUL = {torch.float16: 1.0, torch.bfloat16: 1.0}
_FAITHFUL_OTHERWISE = 1e-2
"""How far float64 may be from the callable's own answer in half of the numbers: more is another function, not rounding."""


class CallableAnswers:
    """Asks one callable.

    Attributes:
        own: the type of its answers.
        computed_in: the type in which it is computed here: float64, or a coarser one where that is not possible.
        why_coarser: why it is not float64; empty where it is.
    """

    def __init__(self, f: Logits) -> None:
        self.f = f
        self.own = self.computed_in = torch.float64
        self.why_coarser = ""
        self._gave_up = False

    @property
    def tolerance(self) -> Tolerance:
        """What rounding may change here."""
        return TOLERANCES[self.computed_in]

    @property
    def own_tolerance(self) -> Tolerance:
        """What rounding may change in the callable as it is."""
        return TOLERANCES.get(self.own, TOLERANCES[torch.float32])

    @property
    def precision(self) -> Precision:
        """The precision of the check, for its report."""
        return Precision(name_of(self.own), name_of(self.computed_in), self.tolerance, self.why_coarser)

    def own_answer(self, source: Tensor, target: Tensor) -> Tensor:
        """The callable's own answer, (batch, target, vocabulary), handed out in float64.

        Raises:
            OptionError: it fails, or returns something else.
        """
        logits = _called(self.f, source, target)
        self.own = logits.dtype if logits.is_floating_point() else self.own
        return logits.detach().cpu().double()

    def __call__(self, source: Tensor, target: Tensor) -> Tensor:
        """The answer computed in float64 where that is possible, the callable's own otherwise."""
        if self._gave_up:
            return self.own_answer(source, target)
        mode = Float64Mode()
        try:
            logits = self._in(mode, source, target)
        except OptionError as error:
            own = self.own_answer(source, target)
            cause = error.__cause__
            self.fall_back_to_own_type(f"{type(cause).__name__}: {str(cause)[:200]}" if cause else str(error), mode.coarsest)
            return own
        if mode.computed_in != torch.float64 and self.computed_in == torch.float64:
            self.computed_in = mode.computed_in
            self.why_coarser = _NO_FLOAT64
        return logits.detach().cpu().double()

    def _in(self, mode: Float64Mode, source: Tensor, target: Tensor) -> Tensor:
        with mode:
            logits = _called(self.f, source, target)
        if logits.is_floating_point() and logits.dtype != torch.float64:
            raise OptionError(f"it answers in {name_of(logits.dtype)} whatever it is given")
        return logits

    def detect_computation_outside_torch(self, *questions: tuple[Tensor, Tensor]) -> None:
        """Falls back to a coarser type where something that depends on the ids is computed outside of float64, which several
        questions of one shape show."""
        modes = [Float64Mode(is_watching=True) for _ in questions]
        try:
            for mode, question in zip(modes, questions, strict=True):
                self._in(mode, *question)
        except OptionError:
            return  # the next question finds out why
        came_in = [mode.came_in or set() for mode in modes]
        for dtype, _, _ in set.union(*came_in) - set.intersection(*came_in):
            self.computed_in = coarser(self.computed_in, dtype)
            is_known = any(mode.computed_in != torch.float64 for mode in modes)
            self.why_coarser = _NO_FLOAT64 if is_known else "a part of it is computed outside of torch, or by TorchScript"

    def measure_rounding(self, source: Tensor, target: Tensor) -> None:
        """Whether the answers hold float64, whatever type the last step has: code outside of torch may compute in float32.

        The same question is asked twice, rounded up and rounded down. Nothing that may leak differs between the two, so what
        differs is rounding alone: about 10^-15 in float64, 10^-7 to 10^-5 in float32.
        """
        if self.computed_in != torch.float64:
            return
        ask = self.own_answer if self._gave_up else lambda *ids: self._in(Float64Mode(), *ids).detach().cpu().double()
        try:
            with rounded("up"):
                up = ask(source, target)
            with rounded("down"):
                down = ask(source, target)
        except OptionError:
            return  # it does not take this rounding: nothing is learnt
        # Not the largest: in one row rounding may decide which of two numbers is larger.
        change = float(Rows.of(up).change(down).quantile(0.75))
        if self.tolerance.same_shape < change < _FAITHFUL_OTHERWISE:
            self.computed_in = torch.float32
            self.why_coarser = f"rounded up and rounded down its answers differ by {change:.1g}"

    def fall_back_to_own_type(self, why: str, coarsest: torch.dtype = torch.float64) -> None:
        """Asks the callable as it is from now on."""
        self._gave_up = True
        self.why_coarser = why
        own = coarser(self.own, coarsest)
        # Never finer than before: the check starts again at every change.
        self.computed_in = coarser(self.computed_in, own if own in TOLERANCES else torch.float32)

    def compare(self, own: Tensor, rows: Rows) -> None:
        """Stops using float64 where the callable answers differently in it."""
        limit = torch.finfo(self.own).max
        # A ban is the lowest number of the type, whichever that is.
        change = ((own.clamp(-limit, limit) - rows.values.clamp(-limit, limit)) / rows.sizes).abs()
        if not self._gave_up and float(change.nanmedian()) > _FAITHFUL.get(self.own, _FAITHFUL_OTHERWISE):
            self.fall_back_to_own_type("in float64 it answers something else")


def _called(f: Logits, source: Tensor, target: Tensor) -> Tensor:
    # Copies: a callable may write into what it is given.
    try:
        logits = f(source.clone(), target.clone())
    except Exception as error:
        raise OptionError(
            f"the callable failed on source ids {tuple(source.shape)} and target ids {tuple(target.shape)}: "
            f"{type(error).__name__}: {str(error)[:300]}. It is called with two int64 tensors (batch, length); "
            "max_length says how long they may be."
        ) from error
    if not isinstance(logits, Tensor) or logits.dim() != 3 or logits.shape[:2] != target.shape:
        given = f"a tensor {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise OptionError(
            f"the callable returned {given} for target ids {tuple(target.shape)}; "
            f"logits of the shape ({target.shape[0]}, {target.shape[1]}, vocabulary) are needed, batch first"
        )
    return logits
