"""Beam search (Sutskever et al. 2014, section 3.2; length normalization as in Wu et al. 2016, section 7, with lengthᵅ).

At every step the `beam_size` best continuations of all live hypotheses are kept, by the sum of log-probabilities;
those that write `<end>` are finished, the others live on. Ties go to the better parent, then to the lower id. A
hypothesis' score is its sum divided by lengthᵅ, `<end>` counted. Width 1 is greedy decoding.

With `refill` the width is kept full, as transformers' `generate(num_beams=…, early_stopping=False)` does: twice as many
continuations are looked at (more where there are several ends), the best that do not end live on, and an end counts only
among the first `beam_size`.

Every row that the model computes, and every continuation that was looked at, is recorded.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Required, TypedDict, Unpack

import torch
from torch import Tensor

from transformer_viz.decoding.reader import Reader, Reading, SoFar, nothing_left, opening, read_opening
from transformer_viz.decoding.stepwise import banning
from transformer_viz.model.tap import Tap

Stop = Literal["bound", "first", "never"]
"""`bound`: when no live hypothesis can still reach the n best; `first`: when n are finished; `never`: at the limit."""
State = Literal["kept", "pruned", "end", "length", "stopped"]


@dataclass(frozen=True)
class Beam:
    """How to search.

    Attributes:
        size: how many continuations are kept at each step.
        length_penalty: α; a hypothesis' score is its sum of log-probabilities divided by lengthᵅ.
        n_best: how many finished hypotheses are wanted.
        stop: when to stop.
        refill: keep the width full where hypotheses end. `bound` is then transformers' estimate: when all of the `size` best
            have ended, and the best that lives would not reach them if it ended now.
    """

    size: int = 5
    length_penalty: float = 0.6
    n_best: int = 5
    stop: Stop = "bound"
    refill: bool = False

    def n_looked_at(self, n_ends: int) -> int:
        """Continuations that each step records: those that are kept, and as many again that came near."""
        return self.size * (max(2, 1 + n_ends) if self.refill else 2)


class Node(NamedTuple):
    """One continuation: a token after a prefix.

    Attributes:
        parent: number of the node that it continues; None after `<start>`.
        row: number of the recorded row from which the token was chosen.
        step: from 0.
        token: id.
        log_probability: of the token.
        total: sum along the hypothesis.
        score: total / lengthᵅ.
        rank: among all continuations of its step, 0 = best.
        state: `kept` went on, `pruned` fell out, `end` and `length` are finished, `stopped` lived when the search stopped.
        pruned_by: number of the worst node that was kept instead.
    """

    parent: int | None
    row: int
    step: int
    token: int
    log_probability: float
    total: float
    score: float
    rank: int
    state: State
    pruned_by: int | None = None


@dataclass
class BeamResult:
    """The search of one sentence.

    Attributes:
        nodes: all continuations that were looked at, in the order of steps and ranks.
        best: numbers of the finished nodes, best score first; at most `n_best`.
        rows: for each step, which rows of its batch are the search's; these are its recorded rows, one after the other.
        logits: of the recorded rows, step by step, (row, vocabulary); those of the first steps may have been taken away
            (`SearchOptions.after_step`).
        given: of what was read before the last token of the opening, (position, vocabulary).
    """

    nodes: list[Node] = field(default_factory=list)
    best: list[int] = field(default_factory=list)
    rows: list[slice] = field(default_factory=list)
    logits: list[Tensor] = field(default_factory=list)
    given: Tensor = field(default_factory=lambda: torch.empty(0, 0))


AfterStep = Callable[[Sequence[BeamResult]], bool]


class SearchOptions(TypedDict, total=False):
    """Keywords of `beam_search`.

    Attributes:
        max_length: the most tokens to write, `<end>` included.
        prefix: ids that every hypothesis begins with.
        ban: ids that are never written.
        tap: sees every attention of the encoder and of every step, (live hypotheses, …).
        after_step: sees the searches as far as they are, and may take logits away that it has looked at. Where it returns
            False the search ends here, as at the limit.
    """

    max_length: Required[int]
    prefix: Sequence[int]
    ban: Sequence[int]
    tap: Tap | None
    after_step: AfterStep | None


@dataclass(frozen=True, kw_only=True)
class _Options:
    """`SearchOptions` with their defaults."""

    max_length: int
    prefix: Sequence[int] = ()
    ban: Sequence[int] = ()
    tap: Tap | None = None
    after_step: AfterStep | None = None


@torch.inference_mode()
def beam_search(
    reader: Reader,
    source: Tensor,
    source_padding: Tensor | None,
    how: Beam,
    **options: Unpack[SearchOptions],
) -> list[BeamResult]:
    """Searches every sentence of a padded batch; all live hypotheses of all sentences are one batch for the model.

    Args:
        reader: in eval mode.
        source: int (batch, source), framed.
        source_padding: bool (batch, source), or None when nothing is padded.
        how: size, penalty and stop.
        options: see `SearchOptions`.
    """
    limits = _Options(**options)
    tap, max_length = limits.tap, limits.max_length
    assert not reader.training, "decoding needs a model in eval mode"
    # Logits come to the CPU first, since not every device has float64.
    without = banning(limits.ban, "cpu")
    searches = [_Sentence(how, max_length, reader.end_ids) for _ in range(len(source))]
    found = [search.found for search in searches]
    decoder, read, logits = _begin(reader, source, source_padding, searches, tap)
    n_opening, sentence = read.shape[1], torch.arange(len(source), device=source.device)
    for step in range(max_length):
        forced = limits.prefix[step] if step < len(limits.prefix) else None
        log_p = logits.double().log_softmax(-1)
        if forced is None and reader.rules is not None:
            padding = None if source_padding is None else source_padding[sentence].cpu()
            log_p = reader.rules(SoFar(read.cpu(), n_opening, max_length, source[sentence].cpu(), padding), log_p)
        log_p = without(log_p)
        start = 0
        parents: list[int] = []
        for search in searches:
            n_live = len(search.live)
            mine = search.advance(step, start, logits[start : start + n_live], log_p[start : start + n_live], forced)
            parents += [start + parent for parent in mine]
            start += n_live
        if not _goes_on(searches, found, limits.after_step) or not parents:
            break
        rows = torch.tensor(parents, device=source.device)
        decoder.reorder(rows)
        tokens = torch.tensor([node.token for search in searches for node in search.live_nodes()], device=source.device)
        if reader.rules is not None:
            read, sentence = torch.cat([read[rows], tokens[:, None]], 1), sentence[rows]
        logits = decoder.read(tokens, tap=tap).cpu()
    return [search.finish() for search in searches]


def _begin(
    reader: Reader, source: Tensor, source_padding: Tensor | None, searches: Sequence["_Sentence"], tap: Tap | None
) -> tuple[Reading, Tensor, Tensor]:
    """Reads the opening. Returns what goes on to be read, the ids that were, and the logits after the last, on the CPU."""
    decoder = reader.incremental(reader.encode(source, source_padding, tap=tap), source_padding)
    read = opening(reader, source)
    given = read_opening(reader, decoder, read, tap)
    for search, rows in zip(searches, given[:, :-1].cpu(), strict=True):
        search.found.given = rows
    return decoder, read, given[:, -1].cpu()


def _goes_on(searches: Sequence["_Sentence"], found: Sequence[BeamResult], after_step: AfterStep | None) -> bool:
    """Whether whoever sees every step wants more; otherwise all searches are ended."""
    if after_step is None or after_step(found):
        return True
    for search in searches:
        search.stop_here()
    return False


class _Sentence:
    """One sentence's search: which prefixes live, and everything that was looked at."""

    def __init__(self, how: Beam, max_length: int, end_ids: Sequence[int]) -> None:
        self.how, self.max_length, self.end_ids = how, max_length, end_ids
        self.n_looked_at = how.n_looked_at(len(end_ids))
        self.found = BeamResult()
        self.live: list[int | None] = [None]
        self.done: list[int] = []
        self.n_rows = 0

    def live_nodes(self) -> list[Node]:
        return [self.found.nodes[number] for number in self.live if number is not None]

    def advance(self, step: int, start: int, logits: Tensor, log_p: Tensor, forced: int | None) -> list[int]:
        """One step; `logits` and `log_p` are (live, vocabulary). Returns for each new live node the row of its parent."""
        if not self.live:
            return []
        first_row = self.n_rows
        self.n_rows += len(self.live)
        self.found.rows.append(slice(start, start + len(self.live)))
        self.found.logits.append(logits)
        live: list[int | None] = []
        parents: list[int] = []
        continuations = self._continuations(step, first_row, log_p, forced)
        if not continuations:
            if not self.done:
                raise nothing_left()
            self._stop()
            return []
        for parent, node in continuations:
            number = len(self.found.nodes)
            self.found.nodes.append(node)
            if node.state in ("end", "length"):
                self.done.append(number)
            elif node.state == "kept":
                live.append(number)
                parents.append(parent)
        self.live = live
        if self._may_stop(step):
            self._stop()
            return []
        return parents

    def _continuations(self, step: int, first_row: int, log_p: Tensor, forced: int | None) -> list[tuple[int, Node]]:
        """The best continuations of all live nodes, best first, and of each which live node it continues."""
        n_tokens = log_p.shape[1]
        # Stable: of equal totals the better parent comes first, then the lower id.
        order = self._totals(log_p, forced).flatten().sort(descending=True, stable=True)
        n_possible = int((order.values > -math.inf).sum())
        best = order.indices[: min(self.n_looked_at, n_possible)]
        each = (best.tolist(), order.values[: len(best)].tolist(), log_p.flatten()[best].tolist())
        found: list[tuple[int, Node]] = []
        first = worst_kept = len(self.found.nodes)
        n_live = 0
        for rank, (place, total, log_probability) in enumerate(zip(*each, strict=True)):
            parent, token = divmod(place, n_tokens)
            state: State = "end" if token in self.end_ids else "length" if step + 1 == self.max_length else "kept"
            # The place counts, or among those that live on, with `refill`, how many did before.
            is_kept = (n_live if self.how.refill and state == "kept" else rank) < self.how.size
            n_live += state == "kept"
            state = state if is_kept else "pruned"
            worst_kept = first + rank if is_kept else worst_kept
            node = Node(
                parent=self.live[parent],
                row=first_row + parent,
                step=step,
                token=token,
                log_probability=log_probability,
                total=total,
                score=total / (step + 1) ** self.how.length_penalty,
                rank=rank,
                state=state,
                pruned_by=worst_kept if state == "pruned" else None,
            )
            found.append((parent, node))
        return found

    def _totals(self, log_p: Tensor, forced: int | None) -> Tensor:
        """Sums of log-probabilities, (live, vocabulary); −∞ for all but the forced token."""
        nodes = self.found.nodes
        before = torch.tensor([0.0 if n is None else nodes[n].total for n in self.live], dtype=torch.float64)
        totals = before[:, None] + log_p
        if forced is None:
            return totals
        only = torch.full_like(totals, float("-inf"))
        only[:, forced] = totals[:, forced]
        return only

    def _stop(self) -> None:
        nodes = self.found.nodes
        for number in self.live:
            assert number is not None
            nodes[number] = nodes[number]._replace(state="stopped")
        self.live = []

    def stop_here(self) -> None:
        """What lives is finished, as long as it is."""
        for number in self.live:
            assert number is not None
            self.found.nodes[number] = self.found.nodes[number]._replace(state="length")
            self.done.append(number)
        self.live = []

    def finish(self) -> BeamResult:
        """Best score first; of equal ones the one that was found first."""
        nodes = self.found.nodes
        self.found.best = sorted(self.done, key=lambda number: (-nodes[number].score, number))[: self.how.n_best]
        return self.found

    def _may_stop(self, step: int) -> bool:
        n_wanted = self.how.size if self.how.refill else self.how.n_best
        if len(self.done) < n_wanted or self.how.stop == "never":
            return False
        if self.how.stop == "first":
            return True
        nodes, alpha = self.found.nodes, self.how.length_penalty
        worst = sorted((nodes[number].score for number in self.done), reverse=True)[n_wanted - 1]
        if self.how.refill:
            return all(nodes[number].score <= worst for number in self.live[:1] if number is not None)
        # A sum only falls. With α ≥ 0 the longest hypothesis divides it by the most, else the next one.
        length = self.max_length if alpha >= 0 else step + 2
        return all(nodes[number].total / length**alpha <= worst for number in self.live if number is not None)
