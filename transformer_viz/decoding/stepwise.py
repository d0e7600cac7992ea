"""The loop of greedy decoding and of sampling: one new query row a step, the rest from the cache.

Everything stays on the device until the end. The one question asked of it at each step is whether every sentence has ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer_viz.decoding.reader import DecodingState, Reader
from transformer_viz.decoding.sampling import Sampling, distribution, drawn
from transformer_viz.decoding.token_batch import TokenBatch
from transformer_viz.errors import OptionError
from transformer_viz.model.tap import Tap


@dataclass(frozen=True)
class Decoded:
    """The output of a decoding.

    Attributes:
        ids: int (batch, step); after a sentence's `<end>` come `<pad>`s.
        lengths: int (batch,); steps of each sentence, its `<end>` included.
        probabilities: float (batch, step), the probability of each token under the distribution that it was
            drawn from, or None where nothing was drawn.
    """

    ids: Tensor
    lengths: Tensor
    probabilities: Tensor | None = None


OnStep = Callable[[int, Tensor, Tensor], bool | None]
"""Takes the number of a step, its logits (batch, vocabulary), before any ban or truncation, and the ids (batch,) that followed.
The steps of what was read before anything was written come first and have negative numbers. Where the callback returns False
of a later one, nothing more is written."""


@torch.inference_mode()
def stepwise(
    reader: Reader,
    batch: TokenBatch,
    *,
    max_length: int,
    sampling: Sampling | None = None,
    prefix: Sequence[int] = (),
    ban: Sequence[int] = (),
    tap: Tap | None = None,
    cached: bool = True,
    on_step: OnStep | None = None,
) -> Decoded:
    """Writes token after token: the most probable one, of equal ones the lowest id, or with `sampling` one that is drawn.

    Args:
        reader: in eval mode; a model in train mode would decode through dropout.
        batch: the texts, before anything is written.
        max_length: the most tokens to write, `<end>` included.
        sampling: how to draw.
        prefix: ids that every sentence begins with, whatever the model would choose.
        ban: ids that are never written.
        tap: sees every attention of the encoder and of every step.
        cached: False computes every row again at every step. Only then may a tap let a query see a later token;
            the tap's last pass is then the one over everything that was read.
        on_step: takes the logits of every row, so that they need not all be kept.
    """
    assert not reader.training, "decoding needs a model in eval mode"
    read, (source, source_padding) = batch.target, batch.first_read
    memory, device = reader.encode(source, source_padding, tap=tap), read.device
    decoder: Any = reader.start_decoding(memory, source_padding) if cached else RecomputingDecoder(reader, memory, batch)
    logits = decoder.read(read, tap=tap)
    n_opening = read.shape[1]
    if on_step is not None:
        for place in range(n_opening - 1):
            on_step(place - n_opening + 1, logits[:, place], read[:, place + 1])
    # On the CPU: the same numbers on every device, and one generator for each sentence.
    generators = [] if sampling is None else [torch.Generator().manual_seed(sampling.seed) for _ in range(len(batch))]
    ends, banned = torch.tensor(reader.end_ids, device=device), torch.tensor(ban, dtype=torch.long, device=device)
    ended = torch.zeros(len(batch), dtype=torch.bool, device=device)
    written, probabilities = list[Tensor](), list[Tensor]()
    for step in range(max_length):
        if step > 0:
            logits = decoder.read(written[-1][:, None], tap=tap)
        row = allowed = logits[:, -1]
        rules = reader.rules if step >= len(prefix) else None
        if rules is not None:
            ids = torch.cat([read, *(token[:, None] for token in written)], 1)
            allowed = rules(DecodingState(ids, n_opening, max_length, source, source_padding), row)
        if ban:
            allowed = allowed.index_fill(-1, banned, float("-inf"))
        # A ban alone never forbids every token.
        if rules is not None and not bool((allowed > float("-inf")).any(-1).all()):
            raise nothing_left()
        probability = None
        if sampling is None:
            token = allowed.argmax(-1)
        else:
            chances = distribution(allowed, sampling)
            marks = torch.stack([torch.rand((), generator=each, dtype=torch.float64) for each in generators])
            token = drawn(chances, marks.to(device, chances.dtype))
            probability = chances.gather(-1, token[:, None])[:, 0]
        if step < len(prefix):
            # One was drawn too, so that what is drawn later does not depend on the prefix.
            token = torch.full_like(token, prefix[step])
            probability = None if probability is None else torch.ones_like(probability)
        token = token.masked_fill(ended, reader.pad_id)
        written.append(token)
        if probability is not None:
            probabilities.append(probability)
        ended = ended | torch.isin(token, ends)
        is_enough = on_step is not None and on_step(step, row, token) is False
        if is_enough or bool(ended.all()):
            break
    ids = torch.stack(written, 1)
    # Until and with `<end>`, or all steps.
    lengths = torch.where(ended, torch.isin(ids, ends).int().argmax(1) + 1, ids.shape[1])
    return Decoded(ids, lengths, torch.stack(probabilities, 1) if probabilities else None)


class RecomputingDecoder:
    """An `IncrementalDecoder` that computes all rows again at every step, for a tap that lets a query see a later token."""

    def __init__(self, reader: Reader, memory: Any, batch: TokenBatch) -> None:
        self._reader, self._memory, self._source_padding = reader, memory, batch.first_read[1]
        self._padding = batch.target_padding
        self._ids: Tensor | None = None

    def read(self, tokens: Tensor, *, tap: Tap | None = None) -> Tensor:
        if self._ids is None:
            self._ids = tokens
            self._ended = torch.zeros_like(tokens[:, :1], dtype=torch.bool)
        else:
            self._ended = self._ended | torch.isin(tokens, torch.tensor(self._reader.end_ids, device=tokens.device))
            self._ids, self._padding = torch.cat([self._ids, tokens], 1), torch.cat([self._padding, self._ended], 1)
        logits = self._reader.decode(self._ids, self._memory, self._source_padding, self._padding, tap=tap)
        return logits[:, -tokens.shape[1] :]


def nothing_left() -> OptionError:
    """Says that every token is forbidden, by the model's own rules, perhaps with a ban."""
    return OptionError(
        "There is a step at which no token may be written: the model, its generation config and ban together forbid every one. "
        "Allow some again, or switch the generation config off."
    )
