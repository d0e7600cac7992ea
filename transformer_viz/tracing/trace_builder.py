"""What a recorder and a decoding hold for a batch, made into one Trace a sentence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from transformer_viz.decoding.stepwise import Decoded
from transformer_viz.errors import CheckpointError
from transformer_viz.loaded_model import LoadedModel, Tokenizer
from transformer_viz.model import devices, masks, mistakes
from transformer_viz.model.sizes import Sizes
from transformer_viz.terms import KINDS, Kind, Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.recorder import Recorder
from transformer_viz.trace.search import Precision
from transformer_viz.trace.trace import Fill, Finished, Step, Trace
from transformer_viz.tracing.ranked import RankedRows, rankings_of
from transformer_viz.vocabulary import PAD

_VERSIONS = {"torch": str(torch.__version__), "numpy": np.__version__}


@dataclass(frozen=True)
class Sentence:
    """What is known of a sentence beside the numbers of its run.

    Attributes:
        source: the text.
        source_ids: what the encoder reads of it; padding that is to be kept included. None where there is no encoder.
        prompt: what a decoder without an encoder reads before it writes; padding that is to be kept included.
        n_padding: how many of these ids are padding: the last of a source, the first of a prompt.
        n_padded_steps: padded steps to keep after the sentence's own, for a target that was given.
    """

    source: str
    source_ids: Sequence[int]
    prompt: Sequence[int] = ()
    n_padding: int = 0
    n_padded_steps: int = 0

    @property
    def n_given(self) -> int:
        """Steps whose token was given: each of the prompt after its first."""
        return max(0, len(self.prompt) - 1)

    @property
    def n_padded_before(self) -> int:
        """Padded positions before the first that the decoder reads."""
        return self.n_padding if self.prompt else 0

    @property
    def padding(self) -> "Padding":
        """What is padding in a picture of it."""
        return Padding(self.n_padding - self.n_padded_before, self.n_padded_before, self.n_padded_steps)


class Padding(NamedTuple):
    """How many positions are padding: the last of a source, and the first and the last that the decoder reads."""

    source: int = 0
    before: int = 0
    behind: int = 0


@dataclass(frozen=True)
class Provenance:
    """How all sentences of a batch were run."""

    by: dict[str, Any]
    mistake: str | None = None
    edits: tuple[str, ...] = ()
    layers: Mapping[Kind, tuple[int, ...]] = field(default_factory=dict)
    """Numbers of the recorded layers of each recorded kind."""


class TraceBuilder:
    """The arrays of a whole batch, moved to the CPU in one go each."""

    def __init__(self, recorder: Recorder, decoded: Decoded, ranked: RankedRows) -> None:
        self.precision: Precision = "float16" if recorder.half else "float32"
        weights = {kind: recorder.gathered(kind, "weights") for kind in KINDS}
        self.weights = {kind: _numpy(found) for kind, found in weights.items() if found is not None}
        # A key that a step could not see because it was not written yet is masked by the causal rule, and has no score.
        self.masked = {
            kind: None if recorder.is_open(kind) else _numpy(recorder.gathered(kind, "mask", fill=True))
            for kind in self.weights
        }
        """None where no mask masked anything."""
        self.is_growing = recorder.is_growing("decoder")
        asked = KINDS if "scores" in recorder.names else ()
        scores = {kind: recorder.gathered(kind, "scores", fill=float("nan")) for kind in asked}
        self.scores = {kind: _numpy(found) for kind, found in scores.items() if found is not None}
        self.ids: list[list[int]] = decoded.ids.tolist()
        self.lengths: list[int] = decoded.lengths.tolist()
        self.ended: list[bool] = decoded.ended.tolist()
        self.n_given = None if decoded.given is None else decoded.given.shape[1]
        """Rows before the first written one, padding on the left included; None where `ids` holds what was given."""
        self.ranked = ranked
        self.logits = decoded.logits
        """Of an encoder alone: of what may stand in the place of each token, (batch, source, vocabulary), or nothing."""
        self.probabilities: list[list[float]] | None = None if decoded.probabilities is None else decoded.probabilities.tolist()

    def trace(self, i: int, checkpoint: LoadedModel, sentence: Sentence, made: Provenance) -> Trace:
        """Sentence `i` of the batch, its arrays cropped to its own tokens and the padding that is kept."""
        tokenizer, ids, n_given = checkpoint.tokenizer, self._ids(i, sentence), sentence.n_given
        read, n_steps = self._read(i, checkpoint, sentence), len(ids)
        n_left = 0 if self.n_given is None else self.n_given - n_given
        steps = self.ranked.of(i, n_left, ids, self.probabilities[i][: n_steps - n_given] if self.probabilities else None)
        if made.mistake is None and not made.edits and any(map(math.isnan, [step.probability for step in steps])):
            raise not_finite(checkpoint)
        part = _Part(i, n_left, len(sentence.source_ids), n_steps, sentence.padding)
        padding, reasons = part.padding, self._reasons(part, checkpoint, made)
        weights = self._weights(part, reasons)
        source_tokens = _labels(tokenizer.source_labels(sentence.source_ids), 0, padding.source)
        written = _labels([step.token for step in steps], padding.before - 1, padding.behind)
        known, with_ids = tokenizer.known(sentence.source, n_steps), not tokenizer.has_unique_labels
        return Trace(
            source=sentence.source,
            text=tokenizer.text(ids[n_given:]),
            source_tokens=source_tokens,
            target_tokens=_labels(tokenizer.target_labels(read), padding.before, padding.behind),
            output_tokens=written,
            steps=tuple(map(_named, steps, written)) if padding.before or padding.behind else steps,
            attentions={
                kind: Attention(
                    weights=weights[kind],
                    reasons=reasons[kind],
                    scores=part.of(kind, self.scores[kind]) if kind in self.scores else None,
                    layers=made.layers[kind],
                )
                for kind in weights
            },
            finished=self._finished(i, checkpoint),
            alignment=known.alignment,
            source_letters=tuple(tokenizer.letters(source_tokens)),
            expected=known.expected,
            expected_tokens=known.expected_tokens,
            made_by=made.by,
            mistake=made.mistake,
            edits=made.edits,
            n_given=n_given,
            fills=self._fills(i, sentence, tokenizer) if not checkpoint.model.kind.writes else (),
            source_ids=tuple(sentence.source_ids) if with_ids else None,
            target_ids=tuple(read) if with_ids else None,
            output_ids=tuple(ids) if with_ids else None,
        )

    def _finished(self, i: int, checkpoint: LoadedModel) -> Finished:
        if not self.lengths[i]:
            return "given"
        return "end" if self.ended[i] and self.ids[i][self.lengths[i] - 1] in checkpoint.model.end_ids else "length"

    def _fills(self, i: int, sentence: Sentence, tokenizer: Tokenizer) -> tuple[Fill, ...]:
        """What may stand in the place of each mask token."""
        places = [place for place, number in enumerate(sentence.source_ids) if number == tokenizer.mask_id]
        if not places or self.logits.numel() == 0:
            return ()
        found = rankings_of(self.logits[i, places].cpu(), self.ranked.n_candidates)
        return tuple(
            Fill(place=place, candidates=candidates, candidate_ids=tuple(ids))
            for place, candidates, ids in zip(places, found.named(tokenizer.label), found.ids, strict=True)
        )

    def _ids(self, i: int, sentence: Sentence) -> list[int]:
        """What followed each row; what was given of it first."""
        given = [] if self.n_given is None else sentence.prompt[1:]
        return [*given, *self.ids[i][: self.lengths[i] + sentence.n_padded_steps]]

    def _read(self, i: int, checkpoint: LoadedModel, sentence: Sentence) -> list[int]:
        """What was read in each row."""
        start, n_padded = checkpoint.model.start_id, sentence.n_padded_steps
        if not checkpoint.model.kind.writes:
            return []
        opening = sentence.prompt[: None if self.n_given is not None else 1] if start is None else [start]
        return [*opening, *self.ids[i][: self.lengths[i] - 1], *[checkpoint.model.pad_id] * n_padded]

    def _weights(self, part: "_Part", reasons: dict[Kind, np.ndarray]) -> dict[Kind, np.ndarray]:
        """Of each kind; zeros where a row of padding before a prompt may look at nothing, which elsewhere is a uniform row."""
        n_padded = part.padding.before
        found = {kind: part.of(kind, whole, self.precision) for kind, whole in self.weights.items()}
        if n_padded and "decoder" in found:
            rows = found["decoder"][..., :n_padded, :]
            rows[np.broadcast_to(reasons["decoder"][..., :n_padded, :] > 0, rows.shape)] = 0
        return found

    def _reasons(self, part: "_Part", checkpoint: LoadedModel, made: Provenance) -> dict[Kind, np.ndarray]:
        """Why each cell is masked: the rule's reason where the model masked by the rule, EDITED where it did not.

        What was masked comes from the run itself, so a mask that the model did not apply is never shown.
        """
        found: dict[Kind, np.ndarray] = {}
        is_changed = checkpoint.task is not None or bool(made.edits) or made.mistake is not None
        for kind, weights in self.weights.items():
            rule = (kind, part.n_source, part.n_steps, part.padding, made.mistake)
            whole = self.masked[kind]
            if whole is None:
                found[kind] = _reason_of_unwritten(*rule, is_growing=kind == "decoder" and self.is_growing)
                continue
            reason = explained(kind, reason_of_masked(*rule), checkpoint.model.sizes, is_changed=is_changed)
            found[kind] = _coded(part.view(kind, whole), reason, weights.shape[2])
        return found


class _Part(NamedTuple):
    """Which part of the arrays of a batch is one sentence's."""

    i: int
    n_left: int
    """Rows of padding before its first: shorter prompts of a batch begin later."""
    n_source: int
    n_steps: int
    padding: Padding
    """That is kept."""

    def view(self, kind: Kind, whole: np.ndarray) -> np.ndarray:
        """(layer, head, query, key) of (batch, layer, head, query, key); what all sentences share has a batch axis of 1."""
        n_queries = self.n_source if kind == "encoder" else self.n_steps
        n_keys = self.n_steps if kind == "decoder" else self.n_source
        first = self.n_left
        return whole[self.i if len(whole) > 1 else 0, ..., first : first + n_queries, first : first + n_keys]

    def of(self, kind: Kind, whole: np.ndarray, precision: Precision = "float32") -> np.ndarray:
        """A copy, unless the batch is this sentence alone: a view would keep the whole batch in memory."""
        own = self.view(kind, whole)
        return np.ascontiguousarray(own, precision) if len(whole) == 1 else np.array(own, precision, order="C")


def explained(kind: Kind, reason: np.ndarray, sizes: Sizes, *, is_changed: bool) -> np.ndarray:
    """The codes of `reason_of_masked` for this model: outside of a sliding window where it has one, then (layer, 1, query, key)
    instead of (query, key); and unknown where neither rule, edit nor mistake tells.
    """
    windows = sizes.windows.get(kind)
    if is_changed and not windows:
        return reason
    is_other = reason == Reason.EDITED
    if not is_changed:
        reason = np.where(is_other, np.uint8(Reason.UNKNOWN), reason)
    if not windows:
        return reason
    query, key = np.indices(reason.shape)
    # A window of n holds the query's own position and the n - 1 next to it.
    outside = [is_other & (np.abs(query - key) >= windows.get(layer, len(reason) + 1)) for layer in sizes.layers[kind]]
    return np.stack([np.where(each, np.uint8(Reason.WINDOW), reason) for each in outside])[:, None]


def not_finite(checkpoint: LoadedModel) -> CheckpointError:
    """Weights can be finite and so large that their sums are not."""
    return CheckpointError(
        f"{checkpoint.name} computes numbers that are not finite for this text: its weights are too large. "
        "Train it again or copy it again."
    )


def made_by(
    checkpoint: LoadedModel, strategy: str, max_length: int, seconds: float, choosing: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a Trace says of its making, of an encoder alone nothing about what is written; `choosing` are the keywords of its
    strategy that were given."""
    given = {name: list(value) if name in ("prefix", "ban") else value for name, value in (choosing or {}).items()}
    writes = {"strategy": strategy, **given, "max_length": max_length} if checkpoint.model.kind.writes else {}
    return {
        "checkpoint": checkpoint.name,
        "variant": checkpoint.variant,
        **({} if checkpoint.task is None else {"task": checkpoint.task.name}),
        **({"generation": dict(checkpoint.generation)} if checkpoint.generation else {}),
        "device": devices.title(checkpoint.device),
        **writes,
        "seconds": round(seconds, 6),
        "versions": dict(_VERSIONS),
    }


@lru_cache(maxsize=16)
@lru_cache(maxsize=16)
def reason_of_masked(kind: Kind, n_source: int, n_steps: int, padding: Padding, mistake: str | None) -> np.ndarray:
    """Why each cell is masked, if it is, uint8 (query, key): by the rule (with a mistake, by what is left of it), or edited."""
    source = torch.arange(n_source)[None] >= n_source - padding.source
    steps = torch.arange(n_steps)[None]
    target = (steps < padding.before) | (steps >= n_steps - padding.behind)
    queries = source if kind == "encoder" else target
    right = masks.decoder_reasons(target) if kind == "decoder" else masks.padding_reasons(source, queries.shape[1])
    rule = right[0] if mistake is None else mistakes.codes(mistakes.named(mistake), kind, right[0], queries[0])
    reason = torch.where(rule > 0, rule, int(Reason.EDITED)).numpy()
    reason.setflags(write=False)
    return reason


@lru_cache(maxsize=16)
def _reason_of_unwritten(
    kind: Kind, n_source: int, n_steps: int, padding: Padding, mistake: str | None, *, is_growing: bool
) -> np.ndarray:
    """The same where no mask masked anything: only what was not written yet when its row was computed was not seen."""
    reason = reason_of_masked(kind, n_source, n_steps, padding, mistake)
    return np.triu(reason, 1) if is_growing else np.zeros_like(reason)


def _coded(masked: np.ndarray, reason: np.ndarray, n_heads: int) -> np.ndarray:
    """(layer, head or 1, query, key) bool and codes, (query, key) or by layer -> codes, (query, key) where all heads agree."""
    first = masked[0, 0]
    if reason.ndim == 2 and (masked[..., 0, 0].size == 1 or (masked == first).all()):
        return reason * first
    codes = reason * masked
    if (codes == codes[:1, :1]).all():
        return codes[0, 0]
    return np.broadcast_to(codes, (len(codes), n_heads, *codes.shape[2:])).copy()


def _labels(labels: Sequence[str], n_before: int, n_behind: int) -> tuple[str, ...]:
    """Padding is called so whichever id stands there, which may be that of the end."""
    if n_before <= 0 and not n_behind:
        return tuple(labels)
    real = range(n_before, len(labels) - n_behind)
    return tuple(label if place in real else PAD for place, label in enumerate(labels))


def _named(step: Step, token: str) -> Step:
    return step if step.token == token else replace(step, token=token)


def _numpy(tensor: Tensor | None) -> np.ndarray:
    assert tensor is not None
    return tensor.cpu().numpy()
