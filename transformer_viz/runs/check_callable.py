"""The leak certificate for a model that is not ours: any callable from (source ids, target ids) to logits.

Nothing can be seen but the output, and padding is a token like any other: replacing it would make it a real
one. So padding is tested by appending more of it, and the future by replacing later target ids.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from transformer_viz.errors import OptionError
from transformer_viz.runs.mask_report import Finding, MaskReport, Rule, verdict_of
from transformer_viz.runs.worst import Worst, relative_row_change

EQUAL_SHAPES, OTHER_SHAPES = 1e-6, 1e-4
"""Tolerances, relative to the largest logit. At another shape a kernel may add in another order."""
_PADS = (1, 2, 7)
_PER_SHAPE = 8
_LEAST_PAIRS = 200
_LONGEST = 512

Logits = Callable[[Tensor, Tensor], Any]


def check_callable(
    f: Logits,
    vocabulary_size: int | None,
    pad_id: int | None,
    *,
    max_length: int = 12,
    avoid: Iterable[int] = (),
    replacements: int = 3,
    seed: int = 0,
) -> MaskReport:
    """Checks at least 200 pairs of all lengths.

    Args:
        f: from (source ids, target ids), int64 (batch, length) on the CPU, to logits (batch, target length, vocabulary).
        vocabulary_size: ids are drawn from 0 to this - 1.
        pad_id: what padding is; None when `f` knows none, which is then not checked.
        max_length: the longest source and target, before up to 7 pads are appended.
        avoid: ids that must not be drawn, special symbols for instance.
        replacements: random replacements of each later position.
        seed: another seed draws other ids.

    Raises:
        OptionError: an impossible keyword, or `f` fails or does not return logits of the right shape.
    """
    real = _real_ids(vocabulary_size, pad_id, avoid)
    if isinstance(max_length, bool) or not isinstance(max_length, int) or not 2 <= max_length <= _LONGEST:
        raise OptionError(f"max_length={max_length!r} is not possible; it is a whole number from 2 to {_LONGEST}")
    check = _Check(f, real, pad_id, replacements, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for n_source, n_target in _shapes(max_length):
            if not check.shape(n_source, n_target):
                break
    return check.report()


class _Check:
    """One check of one callable."""

    def __init__(self, f: Logits, real: Tensor, pad_id: int | None, replacements: int, generator: torch.Generator) -> None:
        self.f, self.real, self.pad_id = f, real, pad_id
        self.replacements, self.generator = replacements, generator
        self.worst = Worst()
        self.is_deterministic = True
        self.n_pairs = self.n_perturbed = 0
        self.farthest_leak = self.farthest_possible = 0

    def shape(self, n_source: int, n_target: int) -> bool:
        """All rules on some pairs of one shape; False when the callable does not answer twice alike."""
        source, target = self._drawn(n_source), self._drawn(n_target)
        base = self._ask(source, target)
        self.n_pairs += len(source)
        again = self._ask(source, target)
        if float(relative_row_change(again, base).max()) > EQUAL_SHAPES:
            self.is_deterministic = False
            return False
        self.worst.see_output("finite", (~base.isfinite().all(-1)).float(), 0.0)
        self._future(source, target, base)
        self._company(source, target, base)
        if self.pad_id is not None:
            self._padding(source, target, base)
        return True

    def report(self) -> MaskReport:
        """What all shapes together say."""
        findings: tuple[Finding, ...] = self.worst.findings() if self.is_deterministic else ()
        return MaskReport(
            verdict=verdict_of(findings) if self.is_deterministic else "not deterministic",
            findings=findings,
            causes=self._causes(findings),
            checked=self.worst.checked,
            pairs=self.n_pairs,
            replacements=self.n_perturbed,
            notes=() if self.pad_id is not None else ("Note: padding was not checked, since pad_id is None.",),
            subject="the callable",
        )

    def _future(self, source: Tensor, target: Tensor, base: Tensor) -> None:
        """One later token at a time, and all of them."""
        for key in range(1, target.shape[1]):
            for turn in range(self.replacements + 1):
                other = target.clone()
                end = target.shape[1] if turn == 0 else key + 1
                other[:, key:end] = self._others(target[:, key:end])
                after = self._ask(source, other)[:, :key]
                self._compare("future", after, base[:, :key], EQUAL_SHAPES, key)
                if turn > 0:
                    changed = (relative_row_change(after, base[:, :key]) > EQUAL_SHAPES).any(0).nonzero()[:, 0].tolist()
                    self.farthest_possible = max(self.farthest_possible, key)
                    self.farthest_leak = max([self.farthest_leak, *(key - step for step in changed)])

    def _company(self, source: Tensor, target: Tensor, base: Tensor) -> None:
        """The first pair alone, and with other neighbours."""
        self._compare("company", self._ask(source[:1], target[:1]), base[:1], OTHER_SHAPES)
        other = self._ask(
            torch.cat([source[:1], self._drawn(source.shape[1])[1:]]), torch.cat([target[:1], self._drawn(target.shape[1])[1:]])
        )
        self._compare("company", other[:1], base[:1], OTHER_SHAPES)

    def _padding(self, source: Tensor, target: Tensor, base: Tensor) -> None:
        for n in _PADS:
            pads = torch.full((len(source), n), self.pad_id or 0)
            self._compare("source padding", self._ask(torch.cat([source, pads], 1), target), base, OTHER_SHAPES)
            longer = self._ask(source, torch.cat([target, pads], 1))
            self._compare("target padding", longer[:, : target.shape[1]], base, OTHER_SHAPES)
        # Uneven sentences in one batch: every second source is cut and filled up.
        cut = max(1, source.shape[1] // 2)
        if cut < source.shape[1]:
            uneven = source.clone()
            uneven[1::2, cut:] = self.pad_id or 0
            mixed = self._ask(uneven, target)
            self._compare("company", mixed[1::2], self._ask(source[1::2, :cut], target[1::2]), OTHER_SHAPES)

    def _compare(self, rule: Rule, after: Tensor, before: Tensor, tolerance: float, key: int | None = None) -> None:
        self.n_perturbed += 1
        self.worst.see_output(rule, relative_row_change(after, before), tolerance, key)

    def _causes(self, findings: tuple[Finding, ...]) -> tuple[str, ...]:
        """Only what the output alone can tell apart."""
        rules = {finding.rule for finding in findings}
        if "finite" in rules:
            return ("padded-queries-nan",) if "source padding" in rules or "target padding" in rules else ()
        if "future" not in rules:
            return ()
        # One token too many in each layer reaches as far as there are layers; no mask at all reaches everything.
        return ("no-causal",) if self.farthest_leak == self.farthest_possible else ("causal-off-by-one",)

    def _ask(self, source: Tensor, target: Tensor) -> Tensor:
        # Copies: a callable may write into what it is given.
        try:
            logits = self.f(source.clone(), target.clone())
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
        return logits.detach().cpu().double()

    def _drawn(self, length: int) -> Tensor:
        return self.real[torch.randint(len(self.real), (_PER_SHAPE, length), generator=self.generator)]

    def _others(self, ids: Tensor) -> Tensor:
        """Random real ids, each different from the one that stands there."""
        shift = torch.randint(1, len(self.real), ids.shape, generator=self.generator)
        return self.real[(torch.searchsorted(self.real, ids.contiguous()) + shift) % len(self.real)]


def _shapes(max_length: int) -> list[tuple[int, int]]:
    """All source lengths against all target lengths in turn, until there are enough pairs."""
    lengths = range(1, max_length + 1)
    rounds = -(-_LEAST_PAIRS // (_PER_SHAPE * max_length))
    return [(n, (n * 5 + 3 * turn) % max_length + 1) for turn in range(rounds) for n in lengths]


def _real_ids(vocabulary_size: int | None, pad_id: int | None, avoid: Iterable[int]) -> Tensor:
    if isinstance(vocabulary_size, bool) or not isinstance(vocabulary_size, int) or not 2 <= vocabulary_size <= 10_000_000:
        raise OptionError(f"vocabulary_size={vocabulary_size!r} is not possible; a callable needs one, from 2 to 10000000")
    if pad_id is not None and (isinstance(pad_id, bool) or not isinstance(pad_id, int) or not 0 <= pad_id < vocabulary_size):
        raise OptionError(f"pad_id={pad_id!r} is not possible; it is None, or an id from 0 to {vocabulary_size - 1}")
    never = {*avoid, *([] if pad_id is None else [pad_id])}
    real = torch.tensor([i for i in range(min(vocabulary_size, 50_000)) if i not in never])
    if len(real) < 2:
        raise OptionError(f"of {vocabulary_size} ids only {len(real)} may be drawn; at least 2 are needed")
    return real
