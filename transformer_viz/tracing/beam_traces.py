"""A recorded beam search made into Traces: the best hypothesis of each sentence, with the search in it."""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_viz.decoding.beam import Beam, BeamResult
from transformer_viz.loaded_model import LoadedModel, Tokenizer
from transformer_viz.model import masks
from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.hypotheses import Given, hypothesis_parts
from transformer_viz.trace.recorder import Recorder
from transformer_viz.trace.search import Precision, Search, SearchNode
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.ranked import Rankings, rankings_of, steps_of
from transformer_viz.tracing.trace_builder import Padding, Provenance, Sentence, explained, not_finite, reason_of_masked

_BLOCK = 1024
"""Nodes whose logits are compared at once."""


class RankedNodes:
    """What one sentence's search needs of its logits: they are looked at in blocks of steps, and not all kept."""

    def __init__(self, n_candidates: int) -> None:
        self.n_candidates = n_candidates
        self.rankings = Rankings([], [], [])
        self.places: list[int] = []
        """Of each node, how many tokens are more probable, or as probable with a lower id."""

    def look(self, found: BeamResult) -> None:
        """Looks at what is new, and takes its logits away."""
        if not found.logits:
            return
        logits, n_rows = torch.cat(found.logits), len(self.rankings.ids)
        best = rankings_of(logits, self.n_candidates)
        self.rankings.ids.extend(best.ids)
        self.rankings.log_probabilities.extend(best.log_probabilities)
        self.rankings.probabilities.extend(best.probabilities)
        for start in range(len(self.places), len(found.nodes), _BLOCK):
            nodes = found.nodes[start : start + _BLOCK]
            rows, token = logits[[node.row - n_rows for node in nodes]], torch.tensor([[node.token] for node in nodes])
            own, ids = rows.gather(1, token), torch.arange(rows.shape[1])
            self.places += ((rows > own) | ((rows == own) & (ids < token))).sum(1).tolist()
        found.logits.clear()

    @property
    def is_sound(self) -> bool:
        """Whether the logits of every row that was looked at were numbers, some of them finite."""
        return not any(map(math.isnan, [row[0] for row in self.rankings.probabilities]))


def traces_of(
    searches: Sequence[BeamResult],
    ranked: Sequence[RankedNodes],
    recorder: Recorder,
    checkpoint: LoadedModel,
    sentences: Sequence[Sentence],
    made: Provenance,
    how: Beam,
) -> list[Trace]:
    """One Trace a sentence."""
    recorded = _Recorded(recorder, ranked[0].n_candidates)
    traces = []
    for i, (found, seen, sentence) in enumerate(zip(searches, ranked, sentences, strict=True)):
        seen.look(found)
        if not seen.is_sound:
            raise not_finite(checkpoint)
        search = _search(found, seen, recorded, checkpoint, sentence, how)
        traces.append(_trace(i, search, found, recorded, checkpoint, sentence, made))
    return traces


class _Recorded:
    """What the recorder holds of all sentences, on the CPU."""

    def __init__(self, recorder: Recorder, n_candidates: int) -> None:
        self.n_candidates = n_candidates
        self.encoder = recorder.gathered("encoder", "weights")
        self.rows: dict[Kind, list[np.ndarray]] = {
            kind: [step.cpu().numpy() for step in recorder.steps(kind, "weights")] for kind in ("decoder", "cross")
        }
        self._recorder = recorder
        self.precision: Precision = "float16" if recorder.half else "float32"

    @cached_property
    def opening(self) -> Tensor | None:
        """Of the pass over a prompt, (batch, layer, head, position, position), or None."""
        return self._recorder.opening("decoder", "weights")


def _search(
    found: BeamResult, seen: RankedNodes, recorded: _Recorded, checkpoint: LoadedModel, sentence: Sentence, how: Beam
) -> Search:
    tokenizer, start = checkpoint.tokenizer, checkpoint.model.start_id
    n_steps, n_given = 1 + found.nodes[-1].step, sentence.n_given
    opening = sentence.prompt if start is None else [start]
    rows = {"decoder": _rows(found, recorded, "decoder", n_given + n_steps), "cross": None}
    if start is not None:
        rows["cross"] = _rows(found, recorded, "cross", len(sentence.source_ids))
    with_ids = not tokenizer.has_unique_labels
    return Search(
        nodes=_nodes(found, seen.places, tokenizer),
        best=tuple(found.best),
        decoder_rows=rows["decoder"],
        cross_rows=rows["cross"],
        alignment=tokenizer.known(sentence.source, n_steps).alignment,
        candidates=seen.rankings.named(tokenizer.label),
        settings=_settings(how),
        opening=tuple(tokenizer.target_labels(opening)),
        opening_ids=tuple(opening) if with_ids else None,
        candidate_ids=tuple(map(tuple, seen.rankings.ids)) if with_ids else (),
        decoder_reasons=_windows(n_given + n_steps, checkpoint, rows["decoder"]),
    )


def _settings(how: Beam) -> dict[str, Any]:
    named = {"beam_size": how.size, "length_penalty": how.length_penalty, "n_best": how.n_best, "stop": how.stop}
    return named | ({"refill": True} if how.refill else {})


def _windows(n: int, checkpoint: LoadedModel, rows: np.ndarray | None) -> np.ndarray | None:
    """Why cells of the decoder are masked where that is not the future alone, uint8 (layer, head, query, key)."""
    sizes = checkpoint.model.sizes
    if "decoder" not in sizes.windows or rows is None:
        return None
    codes = explained("decoder", reason_of_masked("decoder", 0, n, Padding(), None), sizes, is_changed=False)
    codes = np.where(codes == Reason.UNKNOWN, np.uint8(0), codes)
    return np.broadcast_to(codes, (*rows.shape[1:3], n, n)).copy()


def _trace(
    i: int,
    search: Search,
    found: BeamResult,
    recorded: _Recorded,
    checkpoint: LoadedModel,
    sentence: Sentence,
    made: Provenance,
) -> Trace:
    tokenizer, n_source = checkpoint.tokenizer, len(sentence.source_ids)
    known, source_tokens = tokenizer.known(sentence.source, len(search.alignment)), tokenizer.source_labels(sentence.source_ids)
    is_padding = torch.arange(n_source)[None] >= n_source - sentence.padding.source
    reasons = masks.padding_reasons(is_padding, n_source)[0].numpy()
    encoder = None if recorded.encoder is None else _own(recorded.encoder[i, ..., :n_source, :n_source], recorded.precision)
    given = _given(i, found, recorded, tokenizer, sentence)
    parts = hypothesis_parts(search, search.best[0], made.layers, reasons[0] if n_source else None, given)
    if encoder is not None:
        parts["attentions"]["encoder"] = Attention(weights=encoder, reasons=reasons, layers=made.layers["encoder"])
    return Trace(
        source=sentence.source,
        source_tokens=tuple(source_tokens),
        source_letters=tuple(tokenizer.letters(source_tokens)),
        expected=known.expected,
        expected_tokens=known.expected_tokens,
        made_by=made.by,
        search=search,
        source_ids=None if tokenizer.has_unique_labels else tuple(sentence.source_ids),
        **parts,
    )


def _given(i: int, found: BeamResult, recorded: _Recorded, tokenizer: Tokenizer, sentence: Sentence) -> Given:
    """What the decoder did in the rows of a prompt before its last, which all hypotheses share."""
    n = sentence.n_given
    if n == 0:
        return Given()
    n_left, whole = len(found.given) - n, recorded.opening
    logits, ids = found.given[n_left:], list(sentence.prompt[1:])
    steps = steps_of(logits, ids, recorded.n_candidates, tokenizer.label, with_ids=not tokenizer.has_unique_labels)
    rows = slice(n_left, n_left + n)
    return Given(steps=steps, decoder=None if whole is None else _own(whole[i][..., rows, rows], recorded.precision))


def _nodes(found: BeamResult, places: Sequence[int], tokenizer: Tokenizer) -> tuple[SearchNode, ...]:
    texts, name, with_ids = _texts(found, tokenizer), tokenizer.label, not tokenizer.has_unique_labels
    return tuple(
        SearchNode(
            parent=node.parent,
            row=node.row,
            step=node.step,
            token=name(node.token),
            text=texts[number],
            log_probability=node.log_probability,
            total=node.total,
            score=node.score,
            rank=node.rank,
            place=places[number],
            state=node.state,
            pruned_by=node.pruned_by,
            token_id=node.token if with_ids else None,
        )
        for number, node in enumerate(found.nodes)
    )


def _texts(found: BeamResult, tokenizer: Tokenizer) -> list[str]:
    """What the path to each node spells. The paths of two steps at a time: all of a wide search would fill a gigabyte."""
    texts: list[str] = []
    paths: dict[int | None, list[int]] = {None: []}
    for _, nodes in groupby(found.nodes, attrgetter("step")):
        rows = [[*paths[node.parent], node.token] for node in nodes]
        paths = dict(enumerate(rows, len(texts)))
        texts += tokenizer.texts(rows)
    return texts


def _rows(found: BeamResult, recorded: _Recorded, kind: Kind, width: int) -> np.ndarray | None:
    """The recorded rows of a sentence, (row, layer, head, width); None where this kind was not kept."""
    steps = recorded.rows[kind]
    if not steps:
        return None
    n_rows = sum([places.stop - places.start for places in found.rows])
    rows, first = np.zeros((n_rows, *steps[0].shape[1:3], width), dtype=recorded.precision), 0
    for step, (recorded_rows, places) in enumerate(zip(steps, found.rows, strict=False)):
        # What stands before the sentence's own keys is the padding of a shorter prompt.
        n_left = recorded_rows.shape[-1] - step - 1 - (width - len(found.rows)) if kind == "decoder" else 0
        own = recorded_rows[places, ..., n_left:][..., :width]
        rows[first : first + len(own), ..., : own.shape[-1]] = own
        first += len(own)
    return rows


def _own(tensor: Tensor, precision: Precision) -> np.ndarray:
    """A copy: a view would keep the whole batch in memory."""
    return np.array(tensor.cpu().numpy(), precision, order="C")
