"""What a recorder and a decoding hold for a batch, made into one Trace a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.decoding.stepwise import Decoded
from transformer_viz.errors import CheckpointError
from transformer_viz.model import masks, mistakes
from transformer_viz.terms import KINDS, Kind, Reason
from transformer_viz.trace.recorder import Recorder
from transformer_viz.trace.search import Precision
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.ranked import steps_of
from transformer_viz.vocabulary import END, PAD, START

_VERSIONS = {"torch": str(torch.__version__), "numpy": np.__version__}


@dataclass(frozen=True)
class Sentence:
    """What is known of a sentence beside the numbers of its run."""

    source: str
    source_tokens: Sequence[str]
    """Framed; padding that is to be kept included."""
    n_padded_steps: int = 0
    """Padded steps to keep after the sentence's own, for a target that was given."""


@dataclass(frozen=True)
class Provenance:
    """How all sentences of a batch were run."""

    by: dict[str, Any]
    mistake: str | None = None
    edits: tuple[str, ...] = ()
    layers: Mapping[Kind, tuple[int, ...]] = field(default_factory=dict)
    """As in a Trace."""


class TraceBuilder:
    """The arrays of a whole batch, moved to the CPU in one go each."""

    def __init__(self, recorder: Recorder, decoded: Decoded, n_candidates: int) -> None:
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
        self.logits = decoded.logits.cpu()
        self.probabilities: list[list[float]] | None = None if decoded.probabilities is None else decoded.probabilities.tolist()
        self.n_candidates = n_candidates

    def trace(self, i: int, checkpoint: Checkpoint, sentence: Sentence, made: Provenance) -> Trace:
        """Sentence `i` of the batch, its arrays cropped to its own tokens and the padding that is kept."""
        task = checkpoint.task
        if made.mistake is None and not made.edits:
            check_finite(self.logits[i], checkpoint)
        n_own, n_source = self.lengths[i], len(sentence.source_tokens)
        n_steps = n_own + sentence.n_padded_steps
        ids, token_of = self.ids[i][:n_steps], task.target_vocabulary.tokens.__getitem__
        output = list(map(token_of, ids))
        symbols = task.read(sentence.source)
        answer = task.answer(symbols)
        sizes = self._sizes(n_source, n_steps)
        weights = {kind: _cropped(self.weights[kind], i, size, self.precision) for kind, size in sizes.items()}
        padded = [PAD] * sentence.n_padded_steps
        probabilities = None if self.probabilities is None else self.probabilities[i][:n_steps]
        return Trace(
            source=sentence.source,
            text=task.join(output),
            source_tokens=tuple(sentence.source_tokens),
            target_tokens=(START, *output[: n_own - 1], *padded),
            output_tokens=tuple(output),
            steps=steps_of(self.logits[i, :n_steps], ids, self.n_candidates, token_of, probabilities),
            encoder_attentions=weights.get("encoder"),
            decoder_attentions=weights.get("decoder"),
            cross_attentions=weights.get("cross"),
            mask_reasons=self._reasons(i, sentence, n_steps, sizes, made),
            scores={kind: _cropped(whole, i, sizes[kind]) for kind, whole in self.scores.items()},
            finished="end" if self.ended[i] and output[n_own - 1] == END else "length",
            alignment=tuple(task.alignment(symbols, n_steps)),
            source_letters=tuple(task.letters(sentence.source_tokens)),
            expected=None if answer is None else task.join(answer),
            expected_tokens=None if answer is None else (*answer, END),
            made_by=made.by,
            mistake=made.mistake,
            edits=made.edits,
            layers=made.layers,
        )

    def _sizes(self, n_source: int, n_steps: int) -> dict[Kind, tuple[int, int]]:
        """Queries and keys of each kind that was recorded."""
        sizes: dict[Kind, tuple[int, int]] = {
            "encoder": (n_source, n_source),
            "decoder": (n_steps, n_steps),
            "cross": (n_steps, n_source),
        }
        return {kind: size for kind, size in sizes.items() if kind in self.weights}

    def _reasons(
        self, i: int, sentence: Sentence, n_steps: int, sizes: dict[Kind, tuple[int, int]], made: Provenance
    ) -> dict[Kind, np.ndarray]:
        """Why each cell is masked: the rule's reason where the model masked by the rule, EDITED where it did not.

        What was masked comes from the run itself, so a mask that the model did not apply is never shown.
        """
        found: dict[Kind, np.ndarray] = {}
        n_padded = sentence.source_tokens.count(PAD), sentence.n_padded_steps
        for kind, (n_queries, n_keys) in sizes.items():
            rule = (kind, len(sentence.source_tokens), n_steps, n_padded, made.mistake)
            whole = self.masked[kind]
            if whole is None:
                found[kind] = _reason_of_unwritten(*rule, is_growing=kind == "decoder" and self.is_growing)
                continue
            # A mask that is the same for all sentences has a batch axis of 1.
            masked = whole[i if len(whole) > 1 else 0, ..., :n_queries, :n_keys]
            found[kind] = _coded(masked, _reason_of_masked(*rule), self.weights[kind].shape[2])
        return found


def check_finite(logits: Tensor, checkpoint: Checkpoint) -> None:
    """Raises a CheckpointError unless all logits are finite: weights can be finite and so large that their sums are not."""
    if not bool(logits.isfinite().all()):
        raise CheckpointError(
            f"{checkpoint.name} computes numbers that are not finite for this text: its weights are too large. "
            "Train it again or copy it again."
        )


def made_by(
    checkpoint: Checkpoint, strategy: str, max_length: int, seconds: float, choosing: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a Trace says of its making; `choosing` are the keywords of its strategy that were given."""
    given = {name: list(value) if name in ("prefix", "ban") else value for name, value in (choosing or {}).items()}
    return {
        "checkpoint": checkpoint.name,
        "variant": checkpoint.variant,
        "task": checkpoint.task.name,
        "device": checkpoint.device_title,
        "strategy": strategy,
        **given,
        "max_length": max_length,
        "seconds": round(seconds, 6),
        "versions": dict(_VERSIONS),
    }


@lru_cache(maxsize=16)
def _reason_of_masked(kind: Kind, n_source: int, n_steps: int, n_padded: tuple[int, int], mistake: str | None) -> np.ndarray:
    """Why each cell is masked, if it is, uint8 (query, key): by the rule (with a mistake, by what is left of it), or edited.

    `n_padded` source tokens and steps, the last ones, are padding.
    """
    source, target = (torch.arange(n)[None] >= n - last for n, last in zip((n_source, n_steps), n_padded, strict=True))
    queries = source if kind == "encoder" else target
    right = masks.decoder_reasons(target) if kind == "decoder" else masks.padding_reasons(source, queries.shape[1])
    rule = right[0] if mistake is None else mistakes.codes(mistakes.named(mistake), kind, right[0], queries[0])
    return torch.where(rule > 0, rule, int(Reason.EDITED)).numpy()


@lru_cache(maxsize=16)
def _reason_of_unwritten(
    kind: Kind, n_source: int, n_steps: int, n_padded: tuple[int, int], mistake: str | None, *, is_growing: bool
) -> np.ndarray:
    """The same where no mask masked anything: only what was not written yet when its row was computed was not seen."""
    reason = _reason_of_masked(kind, n_source, n_steps, n_padded, mistake)
    return np.triu(reason, 1) if is_growing else np.zeros_like(reason)


def _coded(masked: np.ndarray, reason: np.ndarray, n_heads: int) -> np.ndarray:
    """(layer, head or 1, query, key) bool and (query, key) codes -> codes, (query, key) where all heads agree."""
    first = masked[0, 0]
    if masked[..., 0, 0].size == 1 or (masked == first).all():
        return reason * first
    return np.broadcast_to(reason * masked, (len(masked), n_heads, *reason.shape)).copy()


def _cropped(whole: np.ndarray, i: int, size: tuple[int, int], precision: Precision = "float32") -> np.ndarray:
    """A copy, unless the batch is this sentence alone: a view would keep the whole batch in memory."""
    own = whole[i, ..., : size[0], : size[1]]
    return np.ascontiguousarray(own, precision) if len(whole) == 1 else np.array(own, precision, order="C")


def _numpy(tensor: Tensor | None) -> np.ndarray:
    assert tensor is not None
    return tensor.cpu().numpy()
