"""What a recorder and a decoding hold for a batch, made into one Trace a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
        # In float32 a probability of 1 - 1e-9 would be 1. On the CPU, because not every device has float64.
        log_probabilities = decoded.logits.cpu().double().log_softmax(-1)
        # By logit, as decoding chooses: log-probabilities can round to a tie. Ties: lowest id first.
        order = decoded.logits.cpu().sort(dim=-1, descending=True, stable=True).indices
        self.ids = _numpy(decoded.ids)
        self.lengths = _numpy(decoded.lengths)
        self.ended = _numpy(decoded.ended)
        self.written = _numpy(log_probabilities.gather(-1, decoded.ids.cpu()[..., None])[..., 0])
        self.rank = _numpy((order == decoded.ids.cpu()[..., None]).int().argmax(-1))
        self.candidates: list[list[list[int]]] = order[..., :n_candidates].tolist()
        self.chances = None if decoded.chances is None else _numpy(decoded.chances)
        best = _numpy(log_probabilities.gather(-1, order[..., :n_candidates]))
        self.candidate_probabilities: list[list[list[float]]] = np.exp(best).tolist()

    def trace(self, i: int, checkpoint: Checkpoint, sentence: Sentence, made: Made) -> Trace:
        """Sentence `i` of the batch, its arrays cropped to its own tokens and the padding that is kept."""
        task = checkpoint.task
        n_own, n_source = int(self.lengths[i]), len(sentence.source_tokens)
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
            steps=tuple(self._step(i, t, output[t], task.target_vocabulary.tokens) for t in range(n_steps)),
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

    def _step(self, i: int, t: int, token: str, tokens: Sequence[str]) -> Step:
        best = zip(self.candidates[i][t], self.candidate_probabilities[i][t], strict=True)
        log_probability = float(self.written[i, t])
        return Step(
            token=token,
            probability=float(np.exp(log_probability)),
            log_probability=log_probability,
            rank=int(self.rank[i, t]),
            candidates=tuple((tokens[number], probability) for number, probability in best),
            sampling_probability=None if self.chances is None else float(self.chances[i, t]),
        )

    def _reasons(
        self, i: int, sentence: Sentence, n_steps: int, sizes: dict[Kind, tuple[int, int]], made: Made
    ) -> dict[Kind, np.ndarray]:
        """Why each cell is masked: the rule's reason where the model masked by the rule, EDITED where it did not.

        What was masked comes from the run itself, so a mask that the model did not apply is never shown.
        """
        source_padding = torch.tensor([[token == PAD for token in sentence.source_tokens]])
        target_padding = torch.arange(n_steps)[None] >= n_steps - sentence.n_padded_steps
        rules: dict[Kind, Tensor] = {
            "encoder": masks.padding_reasons(source_padding, len(sentence.source_tokens))[0],
            "decoder": masks.decoder_reasons(target_padding)[0],
            "cross": masks.padding_reasons(source_padding, n_steps)[0],
        }
        if made.mistake is not None:
            mistake = mistakes.named(made.mistake)
            queries = {"encoder": source_padding[0], "decoder": target_padding[0], "cross": target_padding[0]}
            rules = {kind: mistakes.codes(mistake, kind, rule, queries[kind]) for kind, rule in rules.items()}
        # A mask that is the same for all sentences has a batch axis of 1.
        masked = {kind: whole[i if len(whole) > 1 else 0] for kind, whole in self.masked.items()}
        n_heads = {kind: whole.shape[2] for kind, whole in self.weights.items()}
        return {
            kind: _explained(masked[kind][:, :, :q, :k], rules[kind].numpy(), n_heads[kind]) for kind, (q, k) in sizes.items()
        }


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


def _explained(masked: np.ndarray, rule: np.ndarray, n_heads: int) -> np.ndarray:
    """(layer, head or 1, query, key) bool and (query, key) codes -> codes, (query, key) where all heads agree."""
    codes = np.where(masked, np.where(rule > 0, rule, int(Reason.EDITED)), 0).astype(np.uint8)
    if (codes == codes[:1, :1]).all():
        return np.ascontiguousarray(codes[0, 0])
    return np.broadcast_to(codes, (len(codes), n_heads, *rule.shape)).copy()


def _cropped(whole: np.ndarray, i: int, size: tuple[int, int], precision: Precision = "float32") -> np.ndarray:
    """A copy, unless the batch is this sentence alone: a view would keep the whole batch in memory."""
    own = whole[i, ..., : size[0], : size[1]]
    return np.ascontiguousarray(own, precision) if len(whole) == 1 else np.array(own, precision, order="C")


def _numpy(tensor: Tensor | None) -> np.ndarray:
    assert tensor is not None
    return tensor.cpu().numpy()
