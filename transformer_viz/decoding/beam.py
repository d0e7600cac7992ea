"""Beam search (Sutskever et al. 2014, section 3.2; length normalization as in Wu et al. 2016, section 7, with lengthᵅ).

At every step the `beam_size` best continuations of all live hypotheses are kept, by the sum of log-probabilities;
those that write `<end>` are finished, the others live on. Ties go to the better parent, then to the lower id. A
hypothesis' score is its sum divided by lengthᵅ, `<end>` counted. Width 1 is greedy decoding.

With `refill` the beam stays full, as in transformers' `generate(num_beams=…, early_stopping=False)`: twice as many
continuations are considered (more where there are several ends), the best that do not end are kept, and an end counts only
among the first `beam_size`.

Every row that the model computes, and every continuation that was considered, is recorded.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from transformer_viz.decoding.reader import DecodingState, Reader
from transformer_viz.decoding.stepwise import nothing_left
from transformer_viz.decoding.token_batch import TokenBatch
from transformer_viz.model.tap import Tap

Stop = Literal["bound", "first", "never"]
"""`bound`: when no live hypothesis can still reach the n best; `first`: when n are finished; `never`: at the limit."""
State = Literal["kept", "pruned", "end", "length", "stopped"]


@dataclass(frozen=True)
class Beam:
    """The options of a beam search.

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

    def n_continuations(self, n_ends: int) -> int:
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
            (`after_step`).
        given: of what was read before the last token of the opening, (position, vocabulary).
    """

    nodes: list[Node] = field(default_factory=list)
    best: list[int] = field(default_factory=list)
    rows: list[slice] = field(default_factory=list)
    logits: list[Tensor] = field(default_factory=list)
    given: Tensor = field(default_factory=lambda: torch.empty(0, 0))


AfterStep = Callable[[Sequence[BeamResult]], bool]


@torch.inference_mode()
def beam_search(
    reader: Reader,
    batch: TokenBatch,
    how: Beam,
    *,
    max_length: int,
    prefix: Sequence[int] = (),
    ban: Sequence[int] = (),
    tap: Tap | None = None,
    after_step: AfterStep | None = None,
) -> list[BeamResult]:
    """Searches every sentence of a padded batch; all live hypotheses of all sentences are one batch for the model.

    Args:
        reader: in eval mode.
        batch: the texts, before anything is written.
        how: size, penalty and stop.
        max_length: the most tokens to write, `<end>` included.
        prefix: ids that every hypothesis begins with.
        ban: ids that are never written.
        tap: sees every attention of the encoder and of every step, (live hypotheses, …).
        after_step: sees the searches as far as they are, and may take logits away that it has looked at. Where it returns
            False the search ends here, as at the limit.
    """
    assert not reader.training, "decoding needs a model in eval mode"
    read, (source, source_padding) = batch.target, batch.first_read
    searches = [_Sentence(how, max_length, reader.end_ids) for _ in range(len(batch))]
    decoder = reader.start_decoding(reader.encode(source, source_padding, tap=tap), source_padding)
    opening_logits = decoder.read(read, tap=tap).cpu()
    for search, rows in zip(searches, opening_logits[:, :-1], strict=True):
        search.given = rows
    logits, n_opening = opening_logits[:, -1], read.shape[1]
    sentence = torch.arange(len(batch), device=read.device)
    for step in range(max_length):
        forced = prefix[step] if step < len(prefix) else None
        # On the CPU, since not every device has float64.
        log_p = logits.double().log_softmax(-1)
        if forced is None and reader.rules is not None:
            padding = None if source_padding is None else source_padding[sentence].cpu()
            log_p = reader.rules(DecodingState(read.cpu(), n_opening, max_length, source[sentence].cpu(), padding), log_p)
        log_p = log_p.index_fill(-1, torch.tensor(ban), -math.inf) if ban else log_p
        start, parents = 0, list[int]()
        for search in searches:
            rows = slice(start, start + len(search.live))
            parents += [start + parent for parent in search.advance(step, start, logits[rows], log_p[rows], forced)]
            start = rows.stop
        if after_step is not None and not after_step(searches):
            for search in searches:
                search.end_live("length")
            break
        if not parents:
            break
        kept = torch.tensor(parents, device=sentence.device)
        decoder.reorder(kept)
        tokens = [search.nodes[number].token for search in searches for number in search.live]
        token = torch.tensor(tokens, device=sentence.device)
        if reader.rules is not None:
            read, sentence = torch.cat([read[kept], token[:, None]], 1), sentence[kept]
        logits = decoder.read(token[:, None], tap=tap)[:, 0].cpu()
    for search in searches:
        # Of equal scores the one that was found first.
        search.best = sorted(search.done, key=lambda number, nodes=search.nodes: (-nodes[number].score, number))[: how.n_best]
    return [*searches]


class _Sentence(BeamResult):
    """One sentence's search, and which prefixes live."""

    def __init__(self, how: Beam, max_length: int, end_ids: Sequence[int]) -> None:
        super().__init__()
        self.how, self.max_length, self.end_ids = how, max_length, end_ids
        self.live: list[Any] = [None]
        """Numbers of nodes; None is the empty prefix."""
        self.done: list[int] = []
        self.n_rows = 0

    def advance(self, step: int, start: int, logits: Tensor, log_p: Tensor, forced: int | None) -> list[int]:
        """One step; `logits` and `log_p` are (live, vocabulary). Returns for each new live node the row of its parent."""
        if not self.live:
            return []
        nodes, how, n_tokens = self.nodes, self.how, log_p.shape[1]
        self.rows.append(slice(start, start + len(self.live)))
        self.logits.append(logits)
        before = torch.tensor([0.0 if n is None else nodes[n].total for n in self.live], dtype=torch.float64)
        totals = before[:, None] + log_p
        if forced is not None:
            only = torch.full_like(totals, -math.inf)
            only[:, forced] = totals[:, forced]
            totals = only
        # Stable: of equal totals the better parent comes first, then the lower id.
        order = totals.flatten().sort(descending=True, stable=True)
        best = order.indices[: min(how.n_continuations(len(self.end_ids)), int((order.values > -math.inf).sum()))]
        if not len(best):
            if not self.done:
                raise nothing_left()
            self.end_live("stopped")
            return []
        live, parents, first = list[int](), list[int](), len(nodes)
        worst_kept = first
        columns = (best.tolist(), order.values[: len(best)].tolist(), log_p.flatten()[best].tolist())
        for rank, (place, total, log_probability) in enumerate(zip(*columns, strict=True)):
            parent, token = divmod(place, n_tokens)
            state: State = "end" if token in self.end_ids else "length" if step + 1 == self.max_length else "kept"
            # The place counts, or with `refill` how many before it live on.
            is_kept = (len(live) if how.refill and state == "kept" else rank) < how.size
            number = first + rank
            if not is_kept:
                state = "pruned"
            else:
                worst_kept = number
                if state == "kept":
                    live.append(number)
                    parents.append(parent)
                else:
                    self.done.append(number)
            nodes.append(
                Node(
                    parent=self.live[parent],
                    row=self.n_rows + parent,
                    step=step,
                    token=token,
                    log_probability=log_probability,
                    total=total,
                    score=total / (step + 1) ** how.length_penalty,
                    rank=rank,
                    state=state,
                    pruned_by=None if is_kept else worst_kept,
                )
            )
        self.n_rows += len(self.live)
        self.live = live
        if self._may_stop(step):
            self.end_live("stopped")
            return []
        return parents

    def end_live(self, state: State) -> None:
        """Ends the search; with `length`, hypotheses that are still live count as finished at their present length."""
        for number in self.live:
            self.nodes[number] = self.nodes[number]._replace(state=state)
        self.done += self.live if state == "length" else []
        self.live = []

    def _may_stop(self, step: int) -> bool:
        how, nodes = self.how, self.nodes
        n_wanted = how.size if how.refill else how.n_best
        if len(self.done) < n_wanted or how.stop == "never":
            return False
        if how.stop == "first":
            return True
        worst = sorted((nodes[number].score for number in self.done), reverse=True)[n_wanted - 1]
        if how.refill:
            return all(nodes[number].score <= worst for number in self.live[:1])
        # A sum only falls. With α ≥ 0 the longest hypothesis divides it by the most, else the next one.
        length = self.max_length if how.length_penalty >= 0 else step + 2
        return all(nodes[number].total / length**how.length_penalty <= worst for number in self.live)
