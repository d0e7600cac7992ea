"""Decoding with everything recorded: text in, Trace out."""

import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.decoding.greedy import Decoded, greedy
from transformer_viz.errors import InputError, OptionError, listed
from transformer_viz.model import devices, masks
from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.recorder import Recorder
from transformer_viz.trace.trace import Step, Trace
from transformer_viz.vocabulary import END, PAD, PAD_ID, START

STRATEGIES = ("greedy",)
LONGEST = 512


@overload
def decode(
    checkpoint: Checkpoint,
    text: str,
    *,
    strategy: str = "greedy",
    max_length: int | None = None,
    candidates: int = 10,
    pad_to: int | None = None,
) -> Trace: ...
@overload
def decode(
    checkpoint: Checkpoint,
    text: list[str] | tuple[str, ...],
    *,
    strategy: str = "greedy",
    max_length: int | None = None,
    candidates: int = 10,
    pad_to: int | None = None,
) -> list[Trace]: ...
def decode(
    checkpoint: Checkpoint,
    text: str | list[str] | tuple[str, ...],
    *,
    strategy: str = "greedy",
    max_length: int | None = None,
    candidates: int = 10,
    pad_to: int | None = None,
) -> Trace | list[Trace]:
    """Decodes one text, or several as one padded batch, and records every attention and mask.

    Args:
        checkpoint: from `load_checkpoint`.
        text: one source text, or a list of them (then a list of Traces comes back).
        strategy: `greedy`.
        max_length: the most tokens to write, `<end>` included; at most 512. Default: the task's limit + 1.
        candidates: how many of the most probable tokens each step keeps.
        pad_to: pad every source to this many tokens (special tokens counted) and keep the padded columns.

    Raises:
        InputError: a text that the task cannot read.
        OptionError: an impossible keyword.
        DeviceError: the device ran out of memory.
    """
    texts = [text] if isinstance(text, str) else list(text)
    if not texts:
        raise InputError("There is no text to decode; give at least one.")
    if strategy not in STRATEGIES:
        raise OptionError(f"strategy {strategy!r} is not known; choose one of {listed(STRATEGIES)}")
    model_limit = checkpoint.model.config.max_positions
    limit = _whole(
        "max_length", max_length, 1, min(LONGEST, model_limit), default=min(checkpoint.task.max_length + 1, model_limit)
    )
    n_candidates = _whole("candidates", candidates, 1, 100_000)
    framed = [checkpoint.task.frame(checkpoint.task.read(t)) for t in texts]
    longest = max(map(len, framed))
    if longest > model_limit:
        raise InputError(
            f"The text makes {longest} tokens with {START} and {END}; this model reads at most {model_limit}. Shorten it."
        )
    width = longest if pad_to is None else _whole("pad_to", pad_to, longest, model_limit)
    rows = [[*tokens, *[PAD] * (width - len(tokens))] for tokens in framed]

    started = time.perf_counter()
    recorder = Recorder()
    with devices.memory_errors(checkpoint.device), devices.few_threads(checkpoint.device, checkpoint.n_parameters):
        source = torch.tensor([checkpoint.task.source_vocabulary.encode(row) for row in rows], device=checkpoint.device)
        is_even = all(len(tokens) == width for tokens in framed)
        padding = None if is_even else masks.padding(source, PAD_ID)
        decoded = greedy(checkpoint.model, source, padding, max_length=limit, tap=recorder)
        run = _Run(recorder, decoded, n_candidates)
    seconds = time.perf_counter() - started
    made_by = _made_by(checkpoint, strategy, limit, seconds)
    traces = [
        _trace(checkpoint, run, i, texts[i], rows[i][: width if pad_to is not None else len(framed[i])], made_by)
        for i in range(len(texts))
    ]
    return traces[0] if isinstance(text, str) else traces


class _Run:
    """The arrays of a whole batch, moved to the CPU in one go each."""

    def __init__(self, recorder: Recorder, decoded: Decoded, n_candidates: int) -> None:
        self.weights = {kind: _numpy(recorder.gathered(kind, "weights")) for kind in ("encoder", "decoder", "cross")}
        # A key that a step could not see because it was not written yet is masked by the causal rule.
        self.masked = {kind: _numpy(recorder.gathered(kind, "mask", fill=True)) for kind in ("encoder", "decoder", "cross")}
        # In float32 a probability of 1 - 1e-9 would be 1. On the CPU, because not every device has float64.
        log_probabilities = decoded.logits.cpu().double().log_softmax(-1)
        # By logit, as decoding chooses: log-probabilities can round to a tie. Ties: lowest id first.
        order = decoded.logits.cpu().sort(dim=-1, descending=True, stable=True).indices
        self.ids = _numpy(decoded.ids)
        self.lengths = _numpy(decoded.lengths)
        self.ended = _numpy(decoded.ended)
        self.written = _numpy(log_probabilities.gather(-1, decoded.ids.cpu()[..., None])[..., 0])
        self.rank = _numpy((order == decoded.ids.cpu()[..., None]).int().argmax(-1))
        self.candidates = _numpy(order[..., :n_candidates])
        self.candidate_scores = _numpy(log_probabilities.gather(-1, order[..., :n_candidates]))


def _trace(checkpoint: Checkpoint, run: _Run, i: int, text: str, source_tokens: list[str], made_by: dict[str, Any]) -> Trace:
    task = checkpoint.task
    n_steps, n_source = int(run.lengths[i]), len(source_tokens)
    output = task.target_vocabulary.decode(run.ids[i, :n_steps].tolist())
    symbols = task.read(text)
    sizes: dict[Kind, tuple[int, int]] = {
        "encoder": (n_source, n_source),
        "decoder": (n_steps, n_steps),
        "cross": (n_steps, n_source),
    }
    weights = {
        kind: np.ascontiguousarray(run.weights[kind][i, :, :, :q, :k], dtype=np.float32) for kind, (q, k) in sizes.items()
    }
    return Trace(
        source=text,
        text=task.join(output),
        source_tokens=tuple(source_tokens),
        target_tokens=(START, *output[:-1]),
        output_tokens=tuple(output),
        steps=tuple(_step(run, i, t, output[t], task.target_vocabulary.tokens) for t in range(n_steps)),
        encoder_attentions=weights["encoder"],
        decoder_attentions=weights["decoder"],
        cross_attentions=weights["cross"],
        mask_reasons=_reasons(run, i, source_tokens, n_steps, sizes),
        finished="end" if run.ended[i] and output[-1] == END else "length",
        alignment=tuple(task.alignment(len(symbols), n_steps)),
        source_letters=tuple(task.letters(source_tokens)),
        expected=task.join(task.answer(symbols)),
        expected_tokens=(*task.answer(symbols), END),
        made_by=made_by,
    )


def _step(run: _Run, i: int, t: int, token: str, tokens: Sequence[str]) -> Step:
    best = zip(run.candidates[i, t].tolist(), np.exp(run.candidate_scores[i, t].astype(np.float64)).tolist(), strict=True)
    log_probability = float(run.written[i, t])
    return Step(
        token=token,
        probability=float(np.exp(log_probability)),
        log_probability=log_probability,
        rank=int(run.rank[i, t]),
        candidates=tuple((tokens[number], probability) for number, probability in best),
    )


def _reasons(
    run: _Run, i: int, source_tokens: Sequence[str], n_steps: int, sizes: dict[Kind, tuple[int, int]]
) -> dict[Kind, np.ndarray]:
    """Why each cell is masked: the rule's reason where the model masked by the rule, EDITED where it did not.

    What was masked comes from the run itself, so a mask that the model did not apply is never shown.
    """
    source_padding = torch.tensor([[token == PAD for token in source_tokens]])
    rules = {
        "encoder": masks.padding_reasons(source_padding, len(source_tokens)),
        "decoder": masks.decoder_reasons(torch.zeros(1, n_steps, dtype=torch.bool)),
        "cross": masks.padding_reasons(source_padding, n_steps),
    }
    # A mask that is the same for all sentences has a batch axis of 1.
    masked = {kind: whole[i if len(whole) > 1 else 0] for kind, whole in run.masked.items()}
    return {kind: _explained(masked[kind][:, :, :q, :k], rules[kind][0].numpy()) for kind, (q, k) in sizes.items()}


def _explained(masked: np.ndarray, rule: np.ndarray) -> np.ndarray:
    """(layer, head or 1, query, key) bool and (query, key) codes -> (query, key) codes where all heads agree."""
    codes = np.where(masked, np.where(rule > 0, rule, int(Reason.EDITED)), 0).astype(np.uint8)
    if (codes == codes[:1, :1]).all():
        return np.ascontiguousarray(codes[0, 0])
    return codes


def _made_by(checkpoint: Checkpoint, strategy: str, max_length: int, seconds: float) -> dict[str, Any]:
    return {
        "checkpoint": checkpoint.name,
        "variant": checkpoint.variant,
        "task": checkpoint.task.name,
        "device": checkpoint.device_title,
        "strategy": strategy,
        "max_length": max_length,
        "seconds": round(seconds, 6),
        "versions": {"torch": version("torch"), "numpy": version("numpy")},
    }


def _numpy(tensor: Tensor | None) -> np.ndarray:
    assert tensor is not None
    return tensor.cpu().numpy()


def _whole(name: str, value: int | None, least: int, most: int, default: int | None = None) -> int:
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise OptionError(f"{name}={value!r} is not possible; it is a whole number from {least} to {most}")
    return value
