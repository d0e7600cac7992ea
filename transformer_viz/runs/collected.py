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
from transformer_viz.model import masks
from transformer_viz.runs import mistakes
from transformer_viz.terms import KINDS, Kind, Reason
from transformer_viz.trace.recorder import Recorder
from transformer_viz.trace.search import Precision
from transformer_viz.trace.trace import Step, Trace
from transformer_viz.vocabulary import END, PAD, START


@dataclass(frozen=True)
class Sentence:
    """What is known of a sentence beside the numbers of its run."""

    source: str
    source_tokens: Sequence[str]
    """Framed; padding that is to be kept included."""
    n_padded_steps: int = 0
    """Padded steps to keep after the sentence's own, for a target that was given."""


@dataclass(frozen=True)
class Made:
    """How all sentences of a batch were run."""

    by: dict[str, Any]
    mistake: str | None = None
    edits: tuple[str, ...] = ()
    layers: Mapping[Kind, tuple[int, ...]] = field(default_factory=dict)
    """As in a Trace."""


class Collected:
    """The arrays of a whole batch, moved to the CPU in one go each."""

    def __init__(self, recorder: Recorder, decoded: Decoded, n_candidates: int) -> None:
        self.precision: Precision = "float16" if recorder.half else "float32"
        weights = {kind: recorder.gathered(kind, "weights") for kind in KINDS}
        self.weights = {kind: _numpy(found) for kind, found in weights.items() if found is not None}
        # A key that a step could not see because it was not written yet is masked by the causal rule, and has no score.
        self.masked = {kind: _numpy(recorder.gathered(kind, "mask", fill=True)) for kind in self.weights}
        scores = {kind: recorder.gathered(kind, "scores", fill=float("nan")) for kind in KINDS}
        self.scores = {kind: _numpy(found) for kind, found in scores.items() if found is not None}
        self.ids = _numpy(decoded.ids)
        self.lengths: list[int] = decoded.lengths.tolist()
        self.ended: list[bool] = decoded.ended.tolist()
        self.steps = _Steps(decoded, n_candidates)

    def trace(self, i: int, checkpoint: Checkpoint, sentence: Sentence, made: Made) -> Trace:
        """Sentence `i` of the batch, its arrays cropped to its own tokens and the padding that is kept."""
        task = checkpoint.task
        n_own, n_source = self.lengths[i], len(sentence.source_tokens)
        n_steps = n_own + sentence.n_padded_steps
        output = task.target_vocabulary.decode(self.ids[i, :n_steps].tolist())
        symbols = task.read(sentence.source)
        answer = task.answer(symbols)
        sizes: dict[Kind, tuple[int, int]] = {
            "encoder": (n_source, n_source),
            "decoder": (n_steps, n_steps),
            "cross": (n_steps, n_source),
        }
        sizes = {kind: size for kind, size in sizes.items() if kind in self.weights}
        weights = {kind: _cropped(self.weights[kind], i, size, self.precision) for kind, size in sizes.items()}
        padded = [PAD] * sentence.n_padded_steps
        return Trace(
            source=sentence.source,
            text=task.join(output),
            source_tokens=tuple(sentence.source_tokens),
            target_tokens=(START, *output[: n_own - 1], *padded),
            output_tokens=tuple(output),
            steps=self.steps.of(i, output, task.target_vocabulary.tokens),
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

    def _reasons(
        self, i: int, sentence: Sentence, n_steps: int, sizes: dict[Kind, tuple[int, int]], made: Made
    ) -> dict[Kind, np.ndarray]:
        """Why each cell is masked: the rule's reason where the model masked by the rule, EDITED where it did not.

        What was masked comes from the run itself, so a mask that the model did not apply is never shown.
        """
        found: dict[Kind, np.ndarray] = {}
        for kind, (n_queries, n_keys) in sizes.items():
            # A mask that is the same for all sentences has a batch axis of 1.
            whole = self.masked[kind]
            masked = whole[i if len(whole) > 1 else 0, ..., :n_queries, :n_keys]
            if masked.any():
                n_padded = sentence.source_tokens.count(PAD), sentence.n_padded_steps
                rule = _rule(kind, len(sentence.source_tokens), n_steps, n_padded, made.mistake)
                found[kind] = _explained(masked, rule, self.weights[kind].shape[2])
            else:
                found[kind] = np.zeros((n_queries, n_keys), np.uint8)
        return found


class _Steps:
    """Probabilities of what was written, as lists: numbers one by one out of arrays take as long as a step of decoding."""

    def __init__(self, decoded: Decoded, n_candidates: int) -> None:
        ids, logits = _numpy(decoded.ids), _numpy(decoded.logits)
        exact = logits.astype(np.float64)
        # In float32 a probability of 1 - 1e-9 would be 1.
        exact -= exact.max(-1, keepdims=True)
        exact -= np.log(np.exp(exact).sum(-1, keepdims=True))
        # By logit, as decoding chooses: log-probabilities can round to a tie. Ties: lowest id first.
        order = (-logits).argsort(-1, "stable")
        sentences, steps = np.ogrid[: ids.shape[0], : ids.shape[1]]
        best, chosen = order[..., :n_candidates], exact[sentences, steps, ids]
        likely = exact[sentences[..., None], steps[..., None], best]
        self.log_probabilities: list[list[float]] = chosen.tolist()
        self.probabilities: list[list[float]] = np.exp(chosen).tolist()
        self.ranks: list[list[int]] = (order == ids[..., None]).argmax(-1).tolist()
        self.candidates: list[list[list[int]]] = best.tolist()
        self.candidate_probabilities: list[list[list[float]]] = np.exp(likely).tolist()
        self.chances: list[list[float]] | None = None if decoded.chances is None else decoded.chances.tolist()

    def of(self, i: int, output: Sequence[str], tokens: Sequence[str]) -> tuple[Step, ...]:
        """Sentence `i`, for as many steps as it has output tokens."""
        chances = [None] * len(output) if self.chances is None else self.chances[i]
        rows = zip(
            output,
            self.probabilities[i],
            self.log_probabilities[i],
            self.ranks[i],
            self.candidates[i],
            self.candidate_probabilities[i],
            chances,
            strict=False,
        )
        return tuple(
            Step(
                token=token,
                probability=probability,
                log_probability=log_probability,
                rank=rank,
                candidates=tuple(zip([tokens[number] for number in candidates], chances_of_them, strict=True)),
                sampling_probability=chance,
            )
            for token, probability, log_probability, rank, candidates, chances_of_them, chance in rows
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
        "versions": {"torch": str(torch.__version__), "numpy": np.__version__},
    }


@lru_cache(maxsize=16)
def _rule(kind: Kind, n_source: int, n_steps: int, n_padded: tuple[int, int], mistake: str | None) -> np.ndarray:
    """Why each cell should be masked, uint8 (query, key); with a mistake, what of that the mistake still masks.

    `n_padded` source tokens and steps, the last ones, are padding.
    """
    source, target = (torch.arange(n)[None] >= n - last for n, last in zip((n_source, n_steps), n_padded, strict=True))
    queries = source if kind == "encoder" else target
    right = masks.decoder_reasons(target) if kind == "decoder" else masks.padding_reasons(source, queries.shape[1])
    rule = right[0] if mistake is None else mistakes.codes(mistakes.named(mistake), kind, right[0], queries[0])
    return rule.numpy()


def _explained(masked: np.ndarray, rule: np.ndarray, n_heads: int) -> np.ndarray:
    """(layer, head or 1, query, key) bool and (query, key) codes -> codes, (query, key) where all heads agree."""
    first = masked[0, 0]
    codes = np.where(rule > 0, rule, np.uint8(Reason.EDITED))
    if (masked == first).all():
        return codes * first
    return np.broadcast_to(codes * masked, (len(masked), n_heads, *rule.shape)).copy()


def _cropped(whole: np.ndarray, i: int, size: tuple[int, int], precision: Precision = "float32") -> np.ndarray:
    """A copy, unless the batch is this sentence alone: a view would keep the whole batch in memory."""
    own = whole[i, ..., : size[0], : size[1]]
    return np.ascontiguousarray(own, precision) if len(whole) == 1 else np.array(own, precision, order="C")


def _numpy(tensor: Tensor | None) -> np.ndarray:
    assert tensor is not None
    return tensor.cpu().numpy()
