"""The leak certificate for a model that is not ours: any callable from (source ids, target ids) to logits.

Nothing can be seen but the output, and padding is a token like any other: replacing it would make it a real
one. So padding is tested by appending more of it, the future by replacing later target ids, and the length by cutting them off.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from transformer_viz.analysis.mask_report import Finding, MaskReport, Rule, verdict_of
from transformer_viz.errors import OptionError
from transformer_viz.mask_checks.answers import Answers, Logits
from transformer_viz.mask_checks.changes import Rows, is_no_distribution
from transformer_viz.mask_checks.diagnosis import named
from transformer_viz.mask_checks.worst import Worst
from transformer_viz.schema import whole_number

_PADS = (1, 2, 7)
_LEAST_PAIRS = 200
_AT_LEAST, _NUMBERS = 8, 4_000_000
"""Pairs of one shape: so many, and more where one answer has fewer numbers than this."""
_POOL = 12
DEFAULT_LENGTH, _LONGEST = 12, 512
"""Tokens of a source and a target: unless a caller says otherwise, and at the most."""


def check_callable(
    f: Logits,
    vocabulary_size: int | None,
    pad_id: int | None,
    *,
    max_length: int = DEFAULT_LENGTH,
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
    whole_number("max_length", max_length, 2, _LONGEST)
    answers = Answers(f)
    with torch.no_grad():
        while True:
            computed_in = answers.computed_in
            check = _Check(answers, _Ids(real, seed), pad_id, replacements, max_length)
            check.run()
            if answers.computed_in == computed_in:
                return check.report()
            # What was seen so far was measured by a finer rule than the callable can be computed by: once more.


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

    def __init__(self, answers: Answers, ids: _Ids, pad_id: int | None, replacements: int, max_length: int) -> None:
        self.answers, self.ids, self.pad_id = answers, ids, pad_id
        self.replacements, self.max_length = replacements, max_length
        self.worst = Worst()
        self.notes: list[str] = []
        self.is_deterministic = True
        self.n_pairs = self.n_perturbed = 0
        self.sees: dict[int, Tensor] = {}
        """By the target's length: which step changed with which token, bool (step, token)."""
        self.example = ""
        self.example_length = 0
        self.shortest = {"source": 1, "target": 1}
        self.refusal = self.refused_alone = ""

    def run(self) -> None:
        """All rules on all shapes, until the callable does not answer twice alike."""
        self._find_shortest()
        at_once = min(-(-_LEAST_PAIRS // self.max_length), _NUMBERS // (self.max_length * len(self.ids.real)))
        at_once = max(at_once, _AT_LEAST)
        for n_source, n_target in self._shapes(-(-_LEAST_PAIRS // (at_once * self.max_length))):
            self.ids.next_pool()
            if not self._shape(self.ids.drawn(at_once, n_source), self.ids.drawn(at_once, n_target)):
                return

    def report(self) -> MaskReport:
        """What all shapes together say."""
        self.notes += self.worst.leave_out_what_the_future_explains()
        findings: tuple[Finding, ...] = self.worst.findings() if self.is_deterministic else ()
        if self.refused_alone:
            self.notes.append(self.refused_alone)
        causes = self._causes(findings)
        if not causes and any(finding.rule == "future" for finding in findings):
            self.notes.append(self._later_tokens())
        if self.pad_id is None:
            self.notes.append("Note: padding was not checked, since pad_id is None.")
        return MaskReport(
            verdict=verdict_of(findings) if self.is_deterministic else "not deterministic",
            findings=findings,
            mistakes=named(*causes),
            checked=self.worst.checked,
            pairs=self.n_pairs,
            replacements=self.n_perturbed,
            notes=tuple(self.notes),
            subject="the callable",
            precision=self.answers.precision,
        )

    # ---- lengths

    def _find_shortest(self) -> None:
        """A callable may take no short source or target, or one length only. The longest it has to take."""
        longest = self.max_length
        source, target = self.ids.drawn(2, longest), self.ids.drawn(2, longest)
        ask = self.answers.as_it_is
        ask(source, target)
        some = {"source": lambda n: (source[:, :n], target), "target": lambda n: (source, target[:, :n])}
        for side, cut in some.items():
            taken = (n for n in range(1, longest) if self._tried(ask, *cut(n)) is not None)
            self.shortest[side] = shortest = next(taken, longest)
            if shortest > 1:
                unchecked = "its length and padding at its end" if shortest == longest else "shorter ones"
                fewest = f"the callable takes no {side} of fewer than {shortest} tokens"
                self.notes.append(f"Note: {unchecked} were not checked, since {fewest}. {self.refusal}")

    def _tried(self, ask: Callable[[Tensor, Tensor], Tensor], source: Tensor, target: Tensor) -> Tensor | None:
        """The answer to a smaller question than one that was answered; None where it is refused."""
        try:
            return ask(source, target)
        except OptionError as error:
            self.refusal = f"It says: {str(error.__cause__ or error)[:200]}"
            return None

    def _is_fixed(self, side: str) -> bool:
        return self.shortest[side] == self.max_length

    def _shapes(self, rounds: int) -> list[tuple[int, int]]:
        """All source lengths, each with some target length; in every round all target lengths occur."""
        shapes = []
        for _ in range(rounds):
            targets = torch.randperm(self.max_length, generator=self.ids.generator) + 1
            shapes += enumerate(targets.tolist(), start=1)
        return [(max(n, self.shortest["source"]), max(m, self.shortest["target"])) for n, m in shapes]

    # ---- the rules

    def _shape(self, source: Tensor, target: Tensor) -> bool:
        """All rules on some pairs of one shape; False when the callable does not answer twice alike."""
        own, again = (self.answers.as_it_is(source, target) for _ in range(2))
        self.n_pairs += len(source)
        self.is_deterministic = float(Rows.of(own).change(again).max()) <= self.answers.own_tolerance.other_shape
        if not self.is_deterministic:
            return False
        if target.shape[1] == self.max_length:
            self.answers.look_outside((source, target), (self.ids.others(source), self.ids.others(target)))
        base = Rows.of(self.answers(source, target))
        self.answers.compare(own, base)
        if target.shape[1] == self.max_length:
            self.answers.measure_rounding(source, target)
        self.worst.see_output("finite", is_no_distribution(own).float(), 0.0)
        self._future(source, target, base)
        self._company(source, target, base)
        self._length(source, target, base)
        if self.pad_id is not None:
            self._pad(source, target, base, self.pad_id)
        # Once more at the end: a callable may remember what it was asked.
        change = base.change(self.answers(source, target))
        self.is_deterministic = float(change.max()) <= self.answers.tolerance.same_shape
        return self.is_deterministic

    def _future(self, source: Tensor, target: Tensor, base: Rows) -> None:
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
                self.worst.see_output("future", change, allowed, key)
                if turn > 0:
                    sees[:key, key] |= (change > allowed).any(0)
                    sees[key:, key] |= (after != base.values)[:, key:].any(-1).any(0)
                if bool((change > allowed).any()) and not 0 < self.example_length <= n:
                    self._keep_example(source, target, other[:, key:end], key, change)

    def _keep_example(self, source: Tensor, target: Tensor, others: Tensor, key: int, change: Tensor) -> None:
        """`others`, (batch, n), took the place of as many target ids from `key` on. The shortest target is kept: it is the
        easiest to look at."""
        i, step = (int(at) for at in torch.unravel_index(change.argmax(), change.shape))
        what = f"token {key + 1}" if others.shape[1] == 1 else f"all from token {key + 1} on"
        self.example_length = target.shape[1]
        self.example = (
            f"For example, step {step + 1} differs by {float(change[i, step]):.2g} when of the target ids {_listed(target[i])} "
            f"{what} becomes {_listed(others[i])} (source ids {_listed(source[i])})."
        )

    def _length(self, source: Tensor, target: Tensor, base: Rows) -> None:
        """The target without its end."""
        for n in range(self.shortest["target"], target.shape[1]):
            after = self._ask(source, target[:, :n])
            self._compare("target length", after, base[:, :n], self.answers.tolerance.other_shape, n)

    def _company(self, source: Tensor, target: Tensor, base: Rows) -> None:
        """The first and the last pair alone, and each half of the batch beside another half."""
        allowed, last = self.answers.tolerance, len(source) - 1
        for i in (slice(0, 1), slice(last, last + 1)):
            alone = self._tried(self._ask, source[i], target[i])
            if alone is None:
                self.refused_alone = f"Note: the callable does not take every pair alone. {self.refusal}"
            else:
                self._compare("company", alone, base[i], allowed.other_shape)
        is_first = (torch.arange(len(source)) <= last // 2)[:, None]
        for is_kept in (is_first, ~is_first):
            others = (torch.where(is_kept, ids, self.ids.drawn(*ids.shape)) for ids in (source, target))
            kept = is_kept[:, 0]
            self._compare("company", self._ask(*others)[kept], base[kept], allowed.same_shape)

    def _pad(self, source: Tensor, target: Tensor, base: Rows, pad_id: int) -> None:
        """More of it at the end of all, and some in place of tokens in every second pair."""
        allowed = self.answers.tolerance
        for n in _PADS:
            pads = torch.full((len(source), n), pad_id)
            if not self._is_fixed("source"):
                self._compare("source padding", self._ask(torch.cat([source, pads], 1), target), base, allowed.other_shape)
            if not self._is_fixed("target"):
                longer = self._ask(source, torch.cat([target, pads], 1))
                self._compare("target padding", longer[:, : target.shape[1]], base, allowed.other_shape)
        self._pad_some_sources(source, target, base, pad_id)
        for key in range(1, target.shape[1]):
            uneven = target.clone()
            uneven[1::2, key:] = pad_id
            mixed = self._ask(source, uneven)
            self._compare("target padding", mixed[1::2, :key], base[1::2, :key], allowed.same_shape)
            self._compare("company", mixed[0::2], base[0::2], allowed.same_shape)

    def _pad_some_sources(self, source: Tensor, target: Tensor, base: Rows, pad_id: int) -> None:
        cut = source.shape[1] // 2
        if cut < self.shortest["source"] and not self._is_fixed("source"):
            return
        uneven = source.clone()
        uneven[1::2, cut:] = pad_id
        mixed, allowed = self._ask(uneven, target), self.answers.tolerance
        self._compare("company", mixed[0::2], base[0::2], allowed.same_shape)
        if not self._is_fixed("source"):
            alone = Rows.of(self._ask(source[1::2, :cut], target[1::2]))
            self._compare("company", mixed[1::2], alone, allowed.other_shape)

    def _ask(self, source: Tensor, target: Tensor) -> Tensor:
        self.n_perturbed += 1
        return self.answers(source, target)

    def _compare(self, rule: Rule, after: Tensor, before: Rows, tolerance: float, key: int | None = None) -> None:
        self.worst.see_output(rule, before.change(after), tolerance, key)

    # ---- what it means

    def _causes(self, findings: tuple[Finding, ...]) -> tuple[str, ...]:
        """Only what the output alone can tell apart."""
        rules = {finding.rule for finding in findings}
        if "finite" in rules:
            return ("padded-queries-nan",) if "source padding" in rules or "target padding" in rules else ()
        if "future" not in rules or max(self.sees) < 3:  # of two tokens, the next one is all that come later
            return ()
        if all(bool(sees.all()) for sees in self.sees.values()):
            return ("no-causal",)
        sees_itself = all(bool(sees.diagonal().all()) for sees in self.sees.values())
        return ("causal-off-by-one",) if sees_itself and self._sees_ahead(1) else ()

    def _sees_ahead(self, n_tokens: int) -> bool:
        """Whether every step sees exactly so many of the tokens after it, as far as there are any."""
        return all(torch.equal(sees.triu(1), torch.ones_like(sees).triu(1).tril(n_tokens)) for sees in self.sees.values())

    def _later_tokens(self) -> str:
        """Which later tokens are seen, in words."""
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


def _listed(ids: Tensor) -> str:
    return _first([str(i) for i in ids.tolist()], " ", 24)


def _first(words: list[str], between: str, n: int = 4) -> str:
    return between.join(words if len(words) <= n else [*words[:n], "…"])


def _ranges(row: Tensor) -> str:
    """bool (token,) -> "2 to 4 and 6": people count from 1."""
    at = [i + 1 for i in row.nonzero()[:, 0].tolist()]
    pairs = zip((i for i in at if i - 1 not in at), (i for i in at if i + 1 not in at), strict=True)
    return _first([str(a) if a == b else f"{a} to {b}" for a, b in pairs], " and ")


def _real_ids(vocabulary_size: int | None, pad_id: int | None, avoid: Iterable[int]) -> Tensor:
    vocabulary_size = whole_number("vocabulary_size", vocabulary_size, 2, 10_000_000)
    if pad_id is not None:
        whole_number("pad_id", pad_id, 0, vocabulary_size - 1)
    never = {*avoid, *([] if pad_id is None else [pad_id])}
    real = torch.tensor([i for i in range(min(vocabulary_size, 50_000)) if i not in never])
    if len(real) < 2:
        raise OptionError(f"of {vocabulary_size} ids only {len(real)} may be drawn; at least 2 are needed")
    return real
