"""Makes one Trace a sentence from what a recorder and a decoding hold for a batch."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_viz.decoding.run import Ran
from transformer_viz.errors import CheckpointError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices, masks, mistakes
from transformer_viz.terms import KINDS, Kind, Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.recorder import Recorder
from transformer_viz.trace.steps import Fill
from transformer_viz.trace.trace import Finished, Trace
from transformer_viz.tracing.decode_request import DecodeRequest
from transformer_viz.tracing.token_ranks import TokenRanks, rankings_of


class TraceBuilder:
    """The arrays of a whole batch, moved to the CPU in one go each."""

    def __init__(self, request: DecodeRequest, recorder: Recorder, ran: Ran, ranks: TokenRanks) -> None:
        self.request, self.ranks, self.batch, self.logits = request, ranks, ran.batch, ran.logits
        self.recorded = {kind: arrays for kind in KINDS if (arrays := recorder.arrays(kind))}
        self.probabilities = None if ran.probabilities is None else ran.probabilities.tolist()

    def trace(self, i: int, made: dict[str, Any]) -> Trace:
        """Sentence `i` of the batch, its arrays cropped to its own tokens and the padding that is kept."""
        request, batch, model, source = self.request, self.batch, self.request.model, self.request.texts[i]
        reader, tokenizer, n_given = model.network, model.tokenizer, batch.n_given[i]
        written, (before, behind) = batch.ids("written", i), batch.kept_padding("target", i)
        steps = self.ranks.steps(i)[batch.span("target", i)]
        if not request.is_changed and any(map(math.isnan, [step.probability for step in steps])):
            raise not_finite(model)
        if self.probabilities is not None:
            drawn = [*[None] * n_given, *self.probabilities[i]]
            steps = [replace(step, sampling_probability=p) for step, p in zip(steps, drawn, strict=False)]
        output_tokens = batch.labels(tokenizer, "written", i)
        if before or behind:
            steps = [replace(step, token=token) for step, token in zip(steps, output_tokens, strict=True)]

        finished: Finished = "given"
        if reader.kind.writes:
            finished = "end" if written[len(written) - behind - 1] in reader.end_ids else "length"
        source_tokens = batch.labels(tokenizer, "source", i)
        if remark := tokenizer.remark(batch.given(i)):
            made = {**made, "remark": remark}
        known, with_ids = tokenizer.task_answer(source, len(written)), not tokenizer.has_unique_labels
        return Trace(
            source=source,
            text=tokenizer.text(batch.output(i)),
            source_tokens=source_tokens,
            target_tokens=batch.labels(tokenizer, "target", i),
            output_tokens=output_tokens,
            steps=tuple(steps),
            attentions={kind: self._attention(i, kind) for kind in self.recorded},
            finished=finished,
            alignment=known.alignment,
            source_letters=tuple(tokenizer.symbol_indices(source_tokens)),
            expected=known.expected,
            expected_tokens=known.expected_tokens,
            made_by=made,
            mistake=None if request.mistake is None else request.mistake.name,
            edits=tuple(map(str, request.edits)),
            n_given=n_given,
            fills=self._fills(i),
            source_ids=tuple(batch.ids("source", i)) if with_ids else None,
            target_ids=tuple(batch.ids("target", i)) if with_ids else None,
            output_ids=tuple(written) if with_ids else None,
        )

    def _attention(self, i: int, kind: Kind) -> Attention:
        """The attention of sentence `i`, (layer, head, query, key). What all sentences share has a batch axis of 1."""
        request, batch, recorded = self.request, self.batch, self.recorded[kind]
        own = {name: batch.crop(whole, kind, i) for name, whole in recorded.items()}
        # By the rule where the model masked by the rule, EDITED where it did not. What was masked comes from the run itself, so
        # a mask that the model did not apply is never shown.
        codes = reasons_if_masked(request, kind, *(batch.own_padding(side, i) for side in ("source", "target"))) * own["mask"]
        is_alike = (codes == codes[:1, :1]).all()
        reasons = (codes[0, 0] if is_alike else np.broadcast_to(codes, own["weights"].shape)).copy()
        # A copy, unless the batch is this sentence alone: a view would keep the whole batch in memory.
        copied = np.ascontiguousarray if len(recorded["weights"]) == 1 else np.array
        cropped = copied(own["weights"], request.recording.precision)
        before, _ = batch.kept_padding("target", i)
        if before and kind == "decoder":
            # A row of padding before a prompt may look at nothing; softmax makes a uniform row of that.
            first = cropped[..., :before, :]
            first[np.broadcast_to(reasons[..., :before, :] > 0, first.shape)] = 0
        return Attention(
            weights=cropped,
            reasons=reasons,
            scores=copied(own["scores"], np.float32) if "scores" in own else None,
            layers=request.recording.layers[kind],
        )

    def _fills(self, i: int) -> tuple[Fill, ...]:
        """The candidates at each mask token of sentence `i`, of an encoder alone."""
        tokenizer, ids = self.request.model.tokenizer, self.batch.ids("source", i)
        if self.logits is None or self.request.model.network.kind.writes:
            return ()
        places = [place for place, number in enumerate(ids) if number == tokenizer.mask_id]
        best = rankings_of(self.logits[i, places].cpu(), self.request.n_candidates)
        rankings = zip(places, best.named(tokenizer.label), best.ids, strict=True)
        return tuple(Fill(place=place, candidates=named, candidate_ids=tuple(own_ids)) for place, named, own_ids in rankings)


def not_finite(model: LoadedModel) -> CheckpointError:
    """The error for a model whose weights are finite, but so large that their sums are not."""
    return CheckpointError(
        f"{model.name} computes numbers that are not finite for this text: its weights are too large. "
        "Train it again or copy it again."
    )


def made_by(request: DecodeRequest, max_length: int, seconds: float) -> dict[str, Any]:
    """The `made_by` of a Trace; for an encoder alone without the keywords about writing."""
    model = request.model
    made: dict[str, Any] = {"checkpoint": model.name, "variant": model.variant}
    if model.task is not None:
        made["task"] = model.task.name
    if model.generation:
        made["generation"] = dict(model.generation)
    made["device"] = devices.title(model.device)
    if model.network.kind.writes:
        given = {name: list(value) if name in ("prefix", "ban") else value for name, value in request.writing.items()}
        kept = request.recording.keywords(model.network.sizes)
        made |= {"strategy": request.strategy, **given, **kept, "max_length": max_length}
    versions = {"torch": str(torch.__version__), "numpy": np.__version__}
    return {**made, "seconds": round(seconds, 6), "versions": versions}


def reasons_if_masked(request: DecodeRequest, kind: Kind, source: Tensor, target: Tensor) -> np.ndarray:
    """Why each cell is masked, in case it is: by a rule that the mistake left in force, by a window, or by an edit; unknown
    where none of them explains it. Codes, (query, key), or with a window (layer, 1, query, key). `source` and `target` are the
    padding of one text, bool (1, place).
    """
    queries = source if kind == "encoder" else target
    right = masks.decoder_reasons(target) if kind == "decoder" else masks.padding_reasons(source, queries.shape[1])
    rule = right[0] if request.mistake is None else mistakes.codes(request.mistake, kind, right[0], queries[0])
    is_known = request.is_changed or request.model.task is not None
    reasons = torch.where(rule > 0, rule, int(Reason.EDITED if is_known else Reason.UNKNOWN)).numpy()
    windows = request.model.network.sizes.windows.get(kind)
    if not windows:
        return reasons
    query, key = np.indices(reasons.shape)
    # A window of n holds the query's own position and the n - 1 next to it.
    widths = [windows.get(layer, len(reasons) + 1) for layer in request.recording.layers[kind]]
    outside = np.stack([(rule.numpy() == 0) & (np.abs(query - key) >= width) for width in widths])
    return np.where(outside, np.uint8(Reason.WINDOW), reasons)[:, None]
