"""The leak certificate for a model that is not ours: any callable from (source ids, target ids) to logits.

Nothing can be seen but the output, and padding is a token like any other: replacing it would make it a real
one. So padding is tested by appending more of it, the future by replacing later target ids, and the length by cutting them off.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from transformer_viz.errors import OptionError, join_names
from transformer_viz.mask_checks.changes import TOLERANCES, Findings, Rows, is_no_distribution, name_of
from transformer_viz.mask_checks.diagnosis import NO_BORDERS, causes_of
from transformer_viz.mask_checks.float64_mode import SHAKEN_BY, Float64Mode, coarser, rounded
from transformer_viz.mask_checks.result import HOW_TO_TURN, Finding, MaskReport, Precision, Rule, Tolerance, verdict_of
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.schema import whole_number

Logits = Callable[[Tensor, Tensor], Any]
Alone = Literal["encoder", "decoder"]
"""The kind of a callable that reads one text. It is given that as its target; a source there is not."""

_NO_FLOAT64 = "one of its functions knows no float64"
_FAITHFUL = {torch.float16: 1.0, torch.bfloat16: 1.0}
_FAITHFUL_OTHERWISE = 1e-2
"""The tolerance between float64 and the callable's own answer in half of the numbers: more is another function."""
_SHAKES, _LAST_DIGITS = 2, 64
"""Times that numbers are shaken to learn what rounding makes of an answer, and last digits of each that may differ."""


class CallableAnswers:
    """Runs one callable, in its own precision and in float64.

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
        """The tolerance of rounding."""
        return TOLERANCES[self.computed_in]

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

    def rows(self, source: Tensor, target: Tensor) -> Rows:
        """The answer, to compare others with. In float64 a number counts as large as what a last digit of the numbers on its
        way makes of it, so that a change which rounding alone may bring about is within the tolerance.

        Where g is 1 − 10⁻¹⁰, one last digit of g is a millionth of 1 − g, whatever the type of the answer.
        """
        answer = self(source, target)
        rows = Rows.of(answer)
        if self._gave_up or self.computed_in != torch.float64:
            return rows
        apart = torch.zeros_like(answer)
        generator = torch.Generator().manual_seed(0)
        for _ in range(_SHAKES):
            try:
                shaken = self._in(Float64Mode(shaking=generator), source, target).detach().cpu().double()
            except OptionError:
                return rows  # it takes no numbers that are shaken: nothing is learnt
            apart = torch.maximum(apart, (shaken - answer).abs().nan_to_num(0.0, posinf=0.0))
        # Not more than the number itself, which another side of a threshold may change by far more than rounding does.
        rounding = _LAST_DIGITS * torch.finfo(torch.float64).eps / SHAKEN_BY * torch.minimum(apart, rows.sizes)
        return Rows.of(answer, rounding / self.tolerance.same_shape)

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

    def measure_rounding(self, source: Tensor, target: Tensor, base: Rows) -> None:
        """Tests whether the answers hold float64, whatever type the last step has: code outside torch may compute in float32.

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
        change = float(Rows(up, base.sizes).change(down).quantile(0.75))
        if self.tolerance.same_shape < change < _FAITHFUL_OTHERWISE:
            self.computed_in = torch.float32
            self.why_coarser = f"rounded up and rounded down its answers differ by {rounded_words(change, 1)}"

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
            f"{type(error).__name__}: {str(error)[:300].removesuffix('.')}. It is called with int64 tensors (batch, length); "
            "max_length says how long they may be, or longest of `tv.wrap`."
        ) from error
    if not isinstance(logits, Tensor) or logits.dim() != 3 or logits.shape[:2] != target.shape:
        given = f"a tensor {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise OptionError(
            f"the callable returned {given} for target ids {tuple(target.shape)}; a torch tensor of logits is needed, of the "
            f"shape ({target.shape[0]}, {target.shape[1]}, vocabulary), batch first"
        )
    return logits


_LENGTH_FIRST = (
    "Note: asked for (length, batch), no sentence sees another one: perhaps it takes the length first, as nn.Transformer does "
    "without batch_first=True."
)
NO_PADDING = "Note: padding was not checked, since pad_id is None."
_PADS = (1, 2, 7)
_LEAST_PAIRS = 200
_AT_LEAST, _NUMBERS = 8, 4_000_000
"""Pairs of one shape: so many, and more where one answer has fewer numbers than this."""
_AS: dict[Alone, str] = {
    "decoder": "a decoder alone, in which no step sees a later one; for an encoder give causal=False",
    "encoder": "an encoder alone, in which all steps see each other",
}
_POOL = 12
DEFAULT_LENGTH, _LONGEST = 12, 512
"""Tokens of a source and a target: unless a caller says otherwise, and at the most."""


def check_callable_masks(
    f: Logits,
    vocabulary_size: int | None,
    pad_id: int | None,
    *,
    max_length: int = DEFAULT_LENGTH,
    longest: int | None = None,
    avoid: Iterable[int] = (),
    replacements: int = 3,
    seed: int = 0,
    alone: Alone | None = None,
) -> MaskReport:
    """Checks at least 200 pairs of all lengths, or texts where it reads one.

    Args:
        f: from (source ids, target ids), int64 (batch, length) on the CPU, to logits (batch, target length, vocabulary).
        vocabulary_size: ids are drawn from 0 to this - 1.
        pad_id: what padding is; None when `f` knows none, which is then not checked.
        max_length: the longest source and target, before up to 7 pads are appended.
        longest: the same with those pads; None: it takes all of them.
        avoid: ids that must not be drawn, special symbols for instance.
        replacements: random replacements of each later position.
        seed: another seed draws other ids.
        alone: what it is where it reads one text, its target: an encoder's steps see each other.

    Raises:
        OptionError: an impossible keyword, or `f` fails or does not return logits of the right shape.
    """
    n_ids = whole_number("vocabulary_size", vocabulary_size, 2, 10_000_000)
    if pad_id is not None:
        whole_number("pad_id", pad_id, 0, n_ids - 1)
    never = {*avoid, pad_id}
    real = torch.tensor([i for i in range(min(n_ids, 50_000)) if i not in never])
    if len(real) < 2:
        raise OptionError(f"of {n_ids} ids only {len(real)} may be drawn; at least 2 are needed")
    whole_number("max_length", max_length, 2, _LONGEST)
    given = real, seed, pad_id, replacements, max_length, longest, alone
    with torch.no_grad():
        try:
            report = _checked(f, *given)
        except OptionError as error:
            turned = _checked_turned(f, *given)
            if turned is None or not turned.sound:
                raise error from error.__cause__
            return replace(turned, verdict="length first")
        turned = _checked_turned(f, *given) if _sees_other_sentences(report) else None
    if turned is None or _sees_other_sentences(turned):
        return report
    if turned.sound:
        return replace(turned, verdict="length first")
    rules = join_names(finding.rule for finding in turned.findings)
    return replace(
        report, notes=(*report.notes, f"{_LENGTH_FIRST} In that order it breaks another rule: {rules}. {HOW_TO_TURN}")
    )


def _checked(
    f: Logits,
    real: Tensor,
    seed: int,
    pad_id: int | None,
    replacements: int,
    max_length: int,
    longest: int | None,
    alone: Alone | None,
) -> MaskReport:
    answers = CallableAnswers(f)
    while True:
        computed_in = answers.computed_in
        check = _Check(answers, _Ids(real, seed), pad_id, replacements, max_length, longest, alone)
        check.run()
        if answers.computed_in == computed_in:
            return check.report()
        # What was seen so far was measured by a finer rule than the callable can be computed by: once more.


def _checked_turned(f: Logits, *given: Any) -> MaskReport | None:
    """The check of a callable that is given, and gives, the length first; None where it does not take that."""

    def turned(source: Tensor, target: Tensor) -> Any:
        logits = f(source.T.contiguous(), target.T.contiguous())
        return logits.transpose(0, 1) if isinstance(logits, Tensor) and logits.dim() == 3 else logits

    try:
        report = _checked(turned, *given)
    except OptionError:
        return None
    return None if report.verdict == "not deterministic" else report


def _sees_other_sentences(report: MaskReport) -> bool:
    return any(finding.rule == "batch invariance" for finding in report.findings)


class _Ids:
    """Draws ids."""

    def __init__(self, real: Tensor, seed: int) -> None:
        self.real = real
        self.generator = torch.Generator().manual_seed(seed)
        self.next_pool()

    def next_pool(self) -> None:
        """Half of the ids come from a few, so that some are there twice however large the vocabulary is."""
        self.pool = self.real[self.numbers(len(self.real), _POOL)]

    def numbers(self, below: int, *shape: int) -> Tensor:
        """Random whole numbers from 0."""
        return torch.randint(below, shape, generator=self.generator)

    def drawn(self, *shape: int) -> Tensor:
        """Random real ids."""
        anywhere, pooled = self.real[self.numbers(len(self.real), *shape)], self.pool[self.numbers(_POOL, *shape)]
        return torch.where(self.numbers(2, *shape) == 1, anywhere, pooled)

    def others(self, ids: Tensor) -> Tensor:
        """Random real ids, each different from the one that stands there."""
        place = torch.searchsorted(self.real, ids.contiguous())
        shifted = self.real[(place + 1 + self.numbers(len(self.real) - 1, *ids.shape)) % len(self.real)]
        drawn = self.drawn(*ids.shape)
        return torch.where(drawn == ids, shifted, drawn)


class _Check:
    """One check of one callable."""

    def __init__(
        self,
        answers: CallableAnswers,
        ids: _Ids,
        pad_id: int | None,
        replacements: int,
        max_length: int,
        longest: int | None = None,
        alone: Alone | None = None,
    ) -> None:
        self.answers, self.ids, self.pad_id, self.alone = answers, ids, pad_id, alone
        self.replacements, self.max_length, self.longest = replacements, max_length, longest
        self.findings = Findings()
        self.notes: list[str] = []
        self.is_deterministic = True
        self.n_pairs = self.n_perturbed = 0
        self.sees: dict[int, Tensor] = {}
        """For each length of the target: which step changed with which token, bool (step, token)."""
        self.example = ""
        self.example_length = 0
        self.shortest = {"source": 1, "target": 1} if alone is None else {"target": 1}
        self.refused_alone = ""
        self.sees_others = False
        """True where a sentence sees the target of another one of its batch."""
        self.sees_those_before = True
        """True where each sees those of all before it, and of no other."""

    def run(self) -> None:
        """Tests all rules on all shapes, until the callable does not answer twice alike."""
        longest = self.max_length
        source, target = self.ids.drawn(2, longest), self.ids.drawn(2, longest)
        self.answers.own_answer(source, target)
        # A callable may take no short source or target, or one length only. The longest it has to take.
        for side in self.shortest:
            refusal, n = "", 1
            while n < longest:
                ids = (source[:, :n], target) if side == "source" else (source, target[:, :n])
                try:
                    self.answers.own_answer(*ids)
                    break
                except OptionError as error:
                    refusal, n = _refusal(error), n + 1
            self.shortest[side] = n
            if n > 1:
                unchecked = "its length and padding at its end" if n == longest else "shorter ones"
                fewest = f"the callable takes no {side} of fewer than {n} tokens"
                self.notes.append(f"Note: {unchecked} were not checked, since {fewest}. {refusal}")
        at_once = max(_AT_LEAST, min(-(-_LEAST_PAIRS // longest), _NUMBERS // (longest * len(self.ids.real))))
        # All source lengths, each with some target length; in every round all target lengths occur.
        shapes = list[tuple[int, int]]()
        for _ in range(-(-_LEAST_PAIRS // (at_once * longest))):
            shapes += enumerate((torch.randperm(longest, generator=self.ids.generator) + 1).tolist(), start=1)
        for n_source, n_target in shapes:
            self.ids.next_pool()
            source = self.ids.drawn(at_once, max(n_source, self.shortest.get("source", 1)))
            target = self.ids.drawn(at_once, max(n_target, self.shortest["target"]))
            if not self._check_shape(source, target):
                return

    def report(self) -> MaskReport:
        """The report of all shapes together."""
        self.notes += self.findings.drop_target_length_beside_future()
        findings: tuple[Finding, ...] = self.findings.worst() if self.is_deterministic else ()
        if self.refused_alone:
            self.notes.append(self.refused_alone)
        # Only what the output alone can tell apart; of two tokens, the next one is all that come later.
        rules, causes = {finding.rule for finding in findings}, tuple[str, ...]()
        if "finite" not in rules and any("padding" in one.rule and math.isinf(one.size) for one in findings):
            causes = ("padded-queries-nan",)  # finite as it is, and not beside padding
        elif "finite" not in rules and "future" in rules and max(self.sees) >= 3:
            if all(bool(sees.all()) for sees in self.sees.values()):
                causes = ("no-causal",)
            elif all(bool(sees.diagonal().all()) for sees in self.sees.values()) and self._sees_ahead(1):
                causes = ("causal-off-by-one",)
        if "future" in rules and not causes:
            self.notes.append(self._later_tokens())
        if self.alone is not None:
            self.notes.append(f"Note: it reads one text, and was checked as {_AS[self.alone]}.")
        if self.pad_id is None:
            self.notes.append(NO_PADDING)
        return MaskReport(
            verdict=verdict_of(findings) if self.is_deterministic else "not deterministic",
            findings=findings,
            mistakes=(*causes_of(*causes), *((NO_BORDERS,) if self.sees_others and self.sees_those_before else ())),
            checked=self.findings.checked,
            pairs=self.n_pairs,
            replacements=self.n_perturbed,
            notes=tuple(self.notes),
            subject="the callable",
            precision=self.answers.precision,
            tried="pairs" if self.alone is None else "texts",
        )

    # ---- the rules

    def _check_shape(self, source: Tensor, target: Tensor) -> bool:
        """Tests all rules on some pairs of one shape; False when the callable does not answer twice alike."""
        own, again = (self.answers.own_answer(source, target) for _ in range(2))
        self.n_pairs += len(source)
        allowed = TOLERANCES.get(self.answers.own, TOLERANCES[torch.float32]).other_shape
        self.is_deterministic = float(Rows.of(own).change(again).max()) <= allowed
        if not self.is_deterministic:
            return False
        if target.shape[1] == self.max_length:
            self.answers.detect_computation_outside_torch((source, target), (self.ids.others(source), self.ids.others(target)))
        base = self.answers.rows(source, target)
        self.answers.compare(own, base)
        if target.shape[1] == self.max_length:
            self.answers.measure_rounding(source, target, base)
        self.findings.add("finite", is_no_distribution(own).float(), 0.0)
        self._check_batch_invariance(source, target, base)
        self._find_neighbours(source, target, base)
        if self.alone != "encoder":
            for pairs in self._apart(source, target, base):
                self._check_future(*pairs)
                self._check_target_length(*pairs)
        if self.pad_id is not None:
            self._check_padding(source, target, base, self.pad_id)
        # Once more at the end: a callable may remember what it was asked.
        change = base.change(self.answers(source, target))
        self.is_deterministic = float(change.max()) <= self.answers.tolerance.same_shape
        return self.is_deterministic

    def _ask(self, source: Tensor, target: Tensor) -> Tensor:
        self.n_perturbed += 1
        return self.answers(source, target)

    def _compare(self, rule: Rule, after: Tensor, before: Rows, *, is_same_shape: bool = True, key: int | None = None) -> None:
        allowed = self.answers.tolerance
        self.findings.add(rule, before.change(after), allowed.same_shape if is_same_shape else allowed.other_shape, key)

    def _check_future(self, source: Tensor, target: Tensor, base: Rows) -> None:
        """One later token at a time, and all of them. No step is earlier than the first token, but a roll is told from a mask
        by whether the first step sees it."""
        allowed, n = self.answers.tolerance.same_shape, target.shape[1]
        sees = self.sees.setdefault(n, torch.zeros(n, n, dtype=torch.bool))
        for key in range(n):
            for turn in range(self.replacements + 1) if key else (1,):
                other = target.clone()
                end = n if turn == 0 else key + 1
                other[:, key:end] = self.ids.others(target[:, key:end])
                after = self._ask(source, other)
                change = base[:, :key].change(after[:, :key])
                self.findings.add("future", change, allowed, key)
                if turn > 0:
                    sees[:key, key] |= (change > allowed).any(0)
                    sees[key:, key] |= (after != base.values)[:, key:].any(-1).any(0)
                if bool((change > allowed).any()) and not 0 < self.example_length <= n:
                    # The shortest target is kept: it is the easiest to look at.
                    i, step = (int(at) for at in torch.unravel_index(change.argmax(), change.shape))
                    what = f"token {key + 1}" if end == key + 1 else f"all from token {key + 1} on"
                    self.example_length = n
                    self.example = (
                        f"For example, step {step + 1} differs by {rounded_words(float(change[i, step]), 2)} when of the "
                        f"target ids {_listed(target[i])} {what} becomes {_listed(other[i, key:end])} (source ids "
                        f"{_listed(source[i])})."
                    )

    def _check_target_length(self, source: Tensor, target: Tensor, base: Rows) -> None:
        """The target without its end."""
        for n in range(self.shortest["target"], target.shape[1]):
            self._compare("target length", self._ask(source, target[:, :n]), base[:, :n], is_same_shape=False, key=n)

    def _apart(self, source: Tensor, target: Tensor, base: Rows) -> list[tuple[Tensor, Tensor, Rows]]:
        """Groups the pairs: all at once; some alone where they see each other, so that what each sees is its own."""
        if not self.sees_others or self.refused_alone:
            return [(source, target, base)]
        alone = [(source[i : i + 1], target[i : i + 1]) for i in self._some_of(target)]
        try:
            self._ask(alone[0][0], alone[0][1][:, : self.shortest["target"]])
        except OptionError as error:
            self._refuse_alone(error)
            return [(source, target, base)]
        return [(*pair, self.answers.rows(*pair)) for pair in alone]

    def _check_batch_invariance(self, source: Tensor, target: Tensor, base: Rows) -> None:
        """The first and the last pair alone, and each half of the batch beside another half."""
        last = len(source) - 1
        for i in (slice(0, 1), slice(last, last + 1)):
            try:
                self._compare("batch invariance", self._ask(source[i], target[i]), base[i], is_same_shape=False)
            except OptionError as error:
                self._refuse_alone(error)
        is_first = (torch.arange(len(source)) <= last // 2)[:, None]
        for is_kept in (is_first, ~is_first):
            others = (torch.where(is_kept, ids, self.ids.drawn(*ids.shape)) for ids in (source, target))
            kept = is_kept[:, 0]
            self._compare("batch invariance", self._ask(*others)[kept], base[kept])

    def _refuse_alone(self, error: OptionError) -> None:
        self.refused_alone = f"Note: the callable does not take every pair alone. {_refusal(error)}"

    def _find_neighbours(self, source: Tensor, target: Tensor, base: Rows) -> None:
        """Finds which sentences of a batch see the target of another one."""
        if not self.findings.has("batch invariance"):
            return
        for i in self._some_of(target):
            other = target.clone()
            other[i] = self.ids.others(target[i])
            change = base.change(self._ask(source, other)).amax(1) > self.answers.tolerance.same_shape
            change[i] = False
            self.sees_others |= bool(change.any())
            self.sees_those_before &= torch.equal(change, torch.arange(len(target)) > i)

    def _some_of(self, sentences: Tensor) -> list[int]:
        """The first, the middle and the last."""
        return [0, len(sentences) // 2, len(sentences) - 1]

    def _check_padding(self, source: Tensor, target: Tensor, base: Rows, pad_id: int) -> None:
        """More of it at the end of all, and some in place of tokens in every second pair."""
        takes_more = {side: shortest < self.max_length for side, shortest in self.shortest.items()}
        of_target: Rule = "source padding" if self.alone == "encoder" else "target padding"
        for n in _PADS:
            pads = torch.full((len(source), n), pad_id)
            if takes_more.get("source") and self._has_room(source, n):
                longer = self._ask(torch.cat([source, pads], 1), target)
                self._compare("source padding", longer, base, is_same_shape=False)
            if takes_more["target"] and self._has_room(target, n):
                longer = self._ask(source, torch.cat([target, pads], 1))
                self._compare(of_target, longer[:, : target.shape[1]], base, is_same_shape=False)
        cut = source.shape[1] // 2
        if self.alone is None and (cut >= self.shortest["source"] or not takes_more["source"]):
            uneven = source.clone()
            uneven[1::2, cut:] = pad_id
            mixed = self._ask(uneven, target)
            self._compare("batch invariance", mixed[0::2], base[0::2])
            if takes_more["source"]:
                alone = self.answers.rows(source[1::2, :cut], target[1::2])
                self.n_perturbed += 1
                self._compare("batch invariance", mixed[1::2], alone, is_same_shape=False)
        for key in range(self.shortest["target"] if self.alone == "encoder" else 1, target.shape[1]):
            uneven = target.clone()
            uneven[1::2, key:] = pad_id
            mixed = self._ask(source, uneven)
            if self.alone == "encoder":
                # What is cut off was seen: each is compared with the shorter text by itself.
                self._compare(
                    of_target, mixed[1::2, :key], self.answers.rows(source[1::2], target[1::2, :key]), is_same_shape=False
                )
            else:
                self._compare(of_target, mixed[1::2, :key], base[1::2, :key])
            self._compare("batch invariance", mixed[0::2], base[0::2])

    def _has_room(self, ids: Tensor, n_pads: int) -> bool:
        return self.longest is None or ids.shape[1] + n_pads <= self.longest

    # ---- what it means

    def _sees_ahead(self, n_tokens: int) -> bool:
        """Tells whether every step sees exactly so many of the tokens after it, as far as there are any."""
        return all(torch.equal(sees.triu(1), torch.ones_like(sees).triu(1).tril(n_tokens)) for sees in self.sees.values())

    def _later_tokens(self) -> str:
        """Names the later tokens that are seen, in words."""
        seen = [sees.triu(1) for n, sees in sorted(self.sees.items()) if bool(sees.triu(1).any())]
        if not seen:  # one token at a time showed nothing
            return f"Sees later tokens. {self.example}"
        ahead = int(seen[-1][0].sum())
        if 0 < ahead < len(seen[-1]) - 1 and self._sees_ahead(ahead):
            which = f"every step sees the next {ahead}, as with a causal mask that is off by one in {ahead} layers"
            if ahead == 1:
                which = "every step sees the next one but not all see their own, as with a target that is shifted"
            return f"Sees later tokens: {which}. {self.example}"
        steps = [f"step {i + 1} sees {_ranges(row)}" for i, row in enumerate(seen[-1]) if bool(row.any())]
        return f"Sees later tokens: of {len(seen[-1])}, {_first(steps, ', ')}. {self.example}"


def _refusal(error: OptionError) -> str:
    return f"It says: {str(error.__cause__ or error)[:200]}"


def _listed(ids: Tensor) -> str:
    return _first([str(i) for i in ids.tolist()], " ", 24)


def _first(words: list[str], between: str, n: int = 4) -> str:
    return between.join(words if len(words) <= n else [*words[:n], "…"])


def _ranges(row: Tensor) -> str:
    """bool (token,) -> "2 to 4 and 6": people count from 1."""
    at = [i + 1 for i in row.nonzero()[:, 0].tolist()]
    pairs = zip((i for i in at if i - 1 not in at), (i for i in at if i + 1 not in at), strict=True)
    return _first([str(a) if a == b else f"{a} to {b}" for a, b in pairs], " and ")
