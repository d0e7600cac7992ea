"""The loop that greedy decoding and sampling share: one new query row a step, the rest from the cache.

Everything stays on the device until the end. The one question asked of it at each step
is whether every sentence has ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer_viz.decoding.reader import DecodingState, Reader, is_end, nothing_left, opening
from transformer_viz.model.tap import Tap


@dataclass(frozen=True)
class Decoded:
    """What a decoding wrote.

    Attributes:
        ids: int (batch, step); after a sentence's `<end>` come `<pad>`s.
        lengths: int (batch,); steps of each sentence, its `<end>` included.
        ended: bool (batch,); False where the length limit stopped the sentence.
        logits: float (batch, step, target vocabulary), before any ban or truncation; no step where a log took them.
        probabilities: float (batch, step), the probability of each token under the distribution that it was
            drawn from, or None where nothing was drawn.
        given: int (batch, position), what was read after the very first token, before anything was written; None = nothing.
    """

    ids: Tensor
    lengths: Tensor
    ended: Tensor
    logits: Tensor
    probabilities: Tensor | None = None
    given: Tensor | None = None


Log = Callable[[Tensor, Tensor], None]
"""Takes logits (batch, vocabulary) and the ids (batch,) that followed, row after row; the given rows first."""


Choose = Callable[[Tensor], tuple[Tensor, Tensor | None]]
"""From logits (batch, vocabulary) to the chosen ids (batch,) and, where they were drawn, their probabilities (batch,)."""


@torch.inference_mode()
def stepwise(
    reader: Reader,
    source: Tensor,
    source_padding: Tensor | None,
    choose: Choose,
    *,
    max_length: int,
    prefix: Sequence[int] = (),
    tap: Tap | None = None,
    cached: bool = True,
    log: Log | None = None,
    after_step: Callable[[Tensor], bool] | None = None,
) -> Decoded:
    """Writes token after token.

    Args:
        reader: in eval mode; a model in train mode would decode through dropout.
        source: int (batch, source), framed.
        source_padding: bool (batch, source), or None when nothing is padded.
        choose: picks the next token of every sentence.
        max_length: the most tokens to write, `<end>` included.
        prefix: ids that every sentence begins with, whatever the model would choose; none by default.
        tap: sees every attention of the encoder and of every step.
        cached: False computes every row again at every step. Only then may a tap let a query see a later token;
            the tap's last pass is then the one over everything that was read.
        log: takes the logits of every row, so that they need not all be kept.
        after_step: sees the ids (batch,) of every step; where it returns False nothing more is written.
    """
    assert not reader.training, "decoding needs a model in eval mode"
    n_sentences = len(source)
    memory = reader.encode(source, source_padding, tap=tap)
    first = opening(reader, source)
    ended = torch.zeros(n_sentences, dtype=torch.bool, device=source.device)
    written, logits, probabilities = list[Tensor](), list[Tensor](), list[Tensor]()
    decoder: Any = (
        reader.start_decoding(memory, source_padding) if cached else RecomputingDecoder(reader, memory, source_padding)
    )
    opening_logits = decoder.read(first, tap=tap)
    if log is not None:
        for place in range(first.shape[1] - 1):
            log(opening_logits[:, place], first[:, place + 1])
    row = opening_logits[:, -1]
    for step in range(max_length):
        if step > 0:
            row = decoder.read(written[-1][:, None], tap=tap)[:, 0]
        if step < len(prefix):
            # Chosen too, so that what is drawn later does not depend on the prefix.
            chosen, probability = choose(row)
            chosen = torch.full_like(chosen, prefix[step])
            probability = None if probability is None else torch.ones_like(probability)
        elif reader.rules is None:
            chosen, probability = choose(row)
        else:
            ids = torch.cat([first, *(token[:, None] for token in written)], 1)
            so_far = DecodingState(ids, first.shape[1], max_length, source, source_padding)
            chosen, probability = choose(_possible(reader.rules(so_far, row)))
        token = chosen.masked_fill(ended, reader.pad_id)
        written.append(token)
        if log is None:
            logits.append(row)
        else:
            log(row, token)
        if probability is not None:
            probabilities.append(probability)
        ended = ended | is_end(reader, token)
        if bool(ended.all()) or (after_step is not None and not after_step(token)):
            break
    ids = torch.stack(written, 1)
    # Until and with `<end>`, or all steps.
    lengths = torch.where(ended, is_end(reader, ids).int().argmax(1) + 1, ids.shape[1])
    return Decoded(
        ids,
        lengths,
        ended,
        torch.stack(logits, 1) if logits else row.new_empty(n_sentences, 0, row.shape[-1]),
        torch.stack(probabilities, 1) if probabilities else None,
        first[:, 1:] if first.shape[1] > 1 else None,
    )


class RecomputingDecoder:
    """An `IncrementalDecoder` that computes all rows again at every step, for a tap that lets a query see a later token."""

    def __init__(self, reader: Reader, memory: Any, source_padding: Tensor | None) -> None:
        self._reader, self._memory, self._source_padding = reader, memory, source_padding
        self._ids: Tensor | None = None

    def read(self, tokens: Tensor, *, tap: Tap | None = None) -> Tensor:
        if self._ids is None:
            is_prompt = self._reader.kind.has_prompt and self._source_padding is not None
            self._ids, self._padding = tokens, self._source_padding if is_prompt else torch.zeros_like(tokens, dtype=torch.bool)
            self._ended = torch.zeros_like(tokens[:, :1], dtype=torch.bool)
        else:
            self._ended = self._ended | is_end(self._reader, tokens)
            self._ids, self._padding = torch.cat([self._ids, tokens], 1), torch.cat([self._padding, self._ended], 1)
        logits = self._reader.decode(self._ids, self._memory, self._source_padding, self._padding, tap=tap)
        return logits[:, -tokens.shape[1] :]


def _possible(logits: Tensor) -> Tensor:
    """Returns the logits (batch, vocabulary), or raises an OptionError where a row forbids every token."""
    if not bool((logits > float("-inf")).any(-1).all()):
        raise nothing_left()
    return logits


def banning(ban: Sequence[int], device: torch.device | str, *, is_checked: bool = False) -> Callable[[Tensor], Tensor]:
    """A function that puts the banned ids of logits (…, vocabulary) to −∞.

    `is_checked`: it raises an OptionError where nothing is left. A ban alone never forbids every token.
    """
    if not ban:
        return lambda logits: logits
    banned = torch.tensor(list(ban), device=device)

    def without(logits: Tensor) -> Tensor:
        left = logits.index_fill(-1, banned, float("-inf"))
        return _possible(left) if is_checked else left

    return without
