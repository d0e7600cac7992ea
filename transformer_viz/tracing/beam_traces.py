"""A recorded beam search made into Traces: the best hypothesis of each sentence, with the search in it."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch

from transformer_viz.decoding.beam import BeamResult
from transformer_viz.model import masks
from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.hypotheses import hypothesis_parts
from transformer_viz.trace.recorder import StepRecorder
from transformer_viz.trace.search import Search, SearchNode
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode_request import DecodeRequest
from transformer_viz.tracing.token_ranks import Rankings, rankings_of, ranks_of, steps_of
from transformer_viz.tracing.trace_builder import not_finite, reasons_if_masked

_BLOCK = 1024
"""Nodes whose logits are compared at once."""


class RankedNodes:
    """Ranks and probabilities of one sentence's nodes, taken from its logits block by block, so that not all are kept."""

    def __init__(self, n_candidates: int) -> None:
        self.n_candidates = n_candidates
        self.rankings = Rankings([], [])
        self.places: list[int] = []
        """For each node, how many tokens are more probable, or equally probable with a lower id."""

    def rank(self, search: BeamResult) -> None:
        """Ranks the search's new nodes, and removes their logits from it."""
        if not search.logits:
            return
        logits, n_rows = torch.cat(search.logits), len(self.rankings.ids)
        best = rankings_of(logits, self.n_candidates)
        self.rankings.ids.extend(best.ids)
        self.rankings.probabilities.extend(best.probabilities)
        for start in range(len(self.places), len(search.nodes), _BLOCK):
            nodes = search.nodes[start : start + _BLOCK]
            rows, token = logits[[node.row - n_rows for node in nodes]], torch.tensor([[node.token] for node in nodes])
            self.places += ranks_of(rows, token)
        search.logits.clear()


class BeamTraces:
    """The searches of a batch, and what the recorder holds of all of them, on the CPU."""

    def __init__(
        self, request: DecodeRequest, recorder: StepRecorder, searches: Sequence[BeamResult], ranked: Sequence[RankedNodes]
    ) -> None:
        self.request, self.searches, self.ranked = request, searches, ranked
        self._encoder = recorder.opening("encoder", "weights")
        self._opening = recorder.opening("decoder", "weights") if any(request.batch.n_given) else None
        """The decoder's weights in the pass over a prompt, (batch, layer, head, position, position), or None."""
        self._rows: dict[Kind, list[np.ndarray]] = {kind: recorder.steps(kind, "weights") for kind in ("decoder", "cross")}

    def trace(self, i: int, made: dict[str, Any]) -> Trace:
        """The best hypothesis of sentence `i`."""
        request, batch, result, ranked = self.request, self.request.batch, self.searches[i], self.ranked[i]
        model, source, n_given, source_ids = request.model, request.texts[i], batch.n_given[i], batch.ids("source", i)
        tokenizer = model.tokenizer
        ranked.rank(result)
        if any(math.isnan(row[0]) for row in ranked.rankings.probabilities):
            raise not_finite(model)
        n_steps = 1 + result.nodes[-1].step
        n_rows = n_given + n_steps
        with_ids = not tokenizer.has_unique_labels
        known, layers = tokenizer.task_answer(source, n_steps), request.recording.layers
        search = self._search(i, n_rows, known.alignment)
        # The decoder's rows of a prompt but its last, which all hypotheses share.
        rows, label = slice(len(result.given) - n_given, len(result.given)), tokenizer.label
        read = batch.ids("target", i)
        given_steps = steps_of(result.given[rows], read[1:], request.n_candidates, label, with_ids=with_ids)
        has_rows = n_given and self._opening is not None
        given_decoder = self._own(self._opening[i, ..., rows, rows]) if has_rows else None
        source_reasons = masks.padding_reasons(batch.own_padding("source", i), len(source_ids))[0].numpy()
        key_reasons = source_reasons[0] if source_ids else None
        given: dict[str, Any] = {"given_steps": given_steps, "given_decoder": given_decoder}
        parts = hypothesis_parts(search, search.best[0], layers, key_reasons, **given)
        if self._encoder is not None:
            weights = self._own(batch.crop(self._encoder, "encoder", i))
            parts["attentions"]["encoder"] = Attention(weights=weights, reasons=source_reasons, layers=layers["encoder"])
        source_tokens = tokenizer.source_labels(source_ids)
        return Trace(
            source=source,
            source_tokens=tuple(source_tokens),
            source_letters=tuple(tokenizer.symbol_indices(source_tokens)),
            expected=known.expected,
            expected_tokens=known.expected_tokens,
            made_by=made,
            search=search,
            source_ids=tuple(source_ids) if with_ids else None,
            **parts,
        )

    def _search(self, i: int, n_rows: int, alignment: tuple[int | None, ...]) -> Search:
        """The record of the search for sentence `i`, whose longest hypothesis has `n_rows` rows."""
        request, result, ranked = self.request, self.searches[i], self.ranked[i]
        reader, tokenizer, beam = request.model.network, request.model.tokenizer, request.beam
        assert beam is not None
        n_source, with_ids = len(request.batch.ids("source", i)), not tokenizer.has_unique_labels
        opening = request.batch.ids("target", i)
        decoder_rows = self._rows_of(result, "decoder", n_rows)
        reasons = None
        if decoder_rows is not None and "decoder" in reader.sizes.windows:
            # Why cells are masked where that is not the future alone.
            reasons = reasons_if_masked(request, "decoder", torch.empty(1, 0), torch.zeros(1, n_rows, dtype=torch.bool))
            reasons = np.where(reasons == Reason.UNKNOWN, np.uint8(0), reasons)
            reasons = np.broadcast_to(reasons, (*decoder_rows.shape[1:3], n_rows, n_rows)).copy()

        # The paths of two steps at a time: all of a wide search would fill a gigabyte.
        texts: list[str] = []
        paths: dict[int | None, list[int]] = {None: []}
        for _, nodes in groupby(result.nodes, lambda node: node.step):
            rows = [[*paths[node.parent], node.token] for node in nodes]
            paths = dict(enumerate(rows, len(texts)))
            texts += tokenizer.texts(rows)

        settings = {"beam_size": beam.size, "length_penalty": beam.length_penalty, "n_best": beam.n_best, "stop": beam.stop}
        search_nodes = []
        for node, text, place in zip(result.nodes, texts, ranked.places, strict=True):
            own: dict[str, Any] = node._asdict() | {"token": tokenizer.label(node.token), "text": text, "place": place}
            search_nodes.append(SearchNode(**own, token_id=node.token if with_ids else None))
        return Search(
            nodes=tuple(search_nodes),
            best=tuple(result.best),
            decoder_rows=decoder_rows,
            cross_rows=None if reader.start_id is None else self._rows_of(result, "cross", n_source),
            alignment=alignment,
            candidates=ranked.rankings.named(tokenizer.label),
            settings=settings | ({"refill": True} if beam.refill else {}),
            opening=tuple(tokenizer.target_labels(opening)),
            opening_ids=tuple(opening) if with_ids else None,
            candidate_ids=tuple(map(tuple, ranked.rankings.ids)) if with_ids else (),
            decoder_reasons=reasons,
        )

    def _rows_of(self, result: BeamResult, kind: Kind, width: int) -> np.ndarray | None:
        """The recorded rows of a sentence, (row, layer, head, width); None where this kind was not kept."""
        steps = self._rows[kind]
        if not steps:
            return None
        n_rows = sum(places.stop - places.start for places in result.rows)
        rows, first = np.zeros((n_rows, *steps[0].shape[1:3], width), dtype=self.request.recording.precision), 0
        for step, (recorded, places) in enumerate(zip(steps, result.rows, strict=False)):
            # What stands before the sentence's own keys is the padding of a shorter prompt.
            n_left = recorded.shape[-1] - step - 1 - (width - len(result.rows)) if kind == "decoder" else 0
            own = recorded[places, ..., n_left:][..., :width]
            rows[first : first + len(own), ..., : own.shape[-1]] = own
            first += len(own)
        return rows

    def _own(self, array: np.ndarray) -> np.ndarray:
        """A copy: a view would keep the whole batch in memory."""
        return np.array(array, self.request.recording.precision, order="C")
