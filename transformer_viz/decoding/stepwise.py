"""The loop that greedy decoding and sampling share: one new query row a step, the rest from the cache.

Everything stays on the device until the end. The one question asked of it at each step
is whether every sentence has ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_viz.decoding.reader import Reader, is_end
from transformer_viz.model.tap import Tap


@dataclass(frozen=True)
class Decoded:
    """What a decoding wrote.

    Attributes:
        ids: int (batch, step); after a sentence's `<end>` come `<pad>`s.
        lengths: int (batch,); steps of each sentence, its `<end>` included.
        ended: bool (batch,); False where the length limit stopped the sentence.
        logits: float (batch, step, target vocabulary), before any ban or truncation.
        chances: float (batch, step), the probability of each token under the distribution that it was
            drawn from, or None where nothing was drawn.
    """

    ids: Tensor
    lengths: Tensor
    ended: Tensor
    logits: Tensor
    probabilities: Tensor | None = None


Choose = Callable[[Tensor], tuple[Tensor, Tensor | None]]
"""From logits (batch, vocabulary) to the chosen ids (batch,) and, where they were drawn, their chances (batch,)."""


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
) -> Decoded:
    """Writes token after token.

    Args:
        reader: in eval mode; a model in train mode would decode through dropout.
        source: int (batch, source), framed.
        source_padding: bool (batch, source), or None when nothing is padded.
        choose: picks the next token of every sentence.
        max_length: the most tokens to write, `<end>` included.
        prefix: ids that every sentence begins with, whatever the model would choose.
        tap: sees every attention of the encoder and of every step.
        cached: False computes every row again at every step. Only then may a tap let a query see a later token;
            the tap's last pass is then the one over everything that was read.
    """
    assert not reader.training, "decoding needs a model in eval mode"
    # Of one sentence it is enough to look at the token: nothing is written after its end.
    is_alone = len(source) == 1
    read = _read(reader, source, source_padding, tap, cached)
    token = torch.full((len(source),), reader.start_id, device=source.device)
    ended, is_over = torch.zeros(len(source), dtype=torch.bool, device=source.device), False
    written: list[Tensor] = []
    logits: list[Tensor] = []
    probabilities: list[Tensor] = []
    for step in range(max_length):
        row = read(token, ended)
        chosen, chance = _or_forced(choose(row), prefix[step] if step < len(prefix) else None)
        token = chosen if is_alone else chosen.masked_fill(ended, reader.pad_id)
        written.append(token)
        logits.append(row)
        if chance is not None:
            probabilities.append(chance)
        if is_alone:
            is_over = token.item() in reader.end_ids
        else:
            ended = ended | is_end(reader, token)
            is_over = bool(ended.all())
        if is_over:
            break
    ids = torch.stack(written, 1)
    drawn = torch.stack(probabilities, 1) if probabilities else None
    if is_alone:
        return Decoded(ids, torch.tensor([len(written)]), torch.tensor([is_over]), torch.stack(logits, 1), drawn)
    return Decoded(ids, _lengths(reader, ids, ended), ended, torch.stack(logits, 1), drawn)


def _read(
    reader: Reader, source: Tensor, source_padding: Tensor | None, tap: Tap | None, cached: bool
) -> Callable[[Tensor, Tensor], Tensor]:
    """A function that reads one more token of every sentence, (batch,), and knows which have ended, bool (batch,).

    It returns the logits of what follows, (batch, vocabulary).
    """
    memory = reader.encode(source, source_padding, tap=tap)
    if cached:
        decoder = reader.incremental(memory, source_padding)
        return lambda token, ended: decoder.read(token, tap=tap)
    tokens: list[Tensor] = []
    after_end: list[Tensor] = []

    def recompute(token: Tensor, ended: Tensor) -> Tensor:
        tokens.append(token)
        after_end.append(ended)
        padding = torch.stack(after_end, 1)
        return reader.decode(torch.stack(tokens, 1), memory, source_padding, padding, tap=tap)[:, -1]

    return recompute


def _or_forced(chosen: tuple[Tensor, Tensor | None], forced: int | None) -> tuple[Tensor, Tensor | None]:
    """What was chosen; the forced id where there is one, which is certain."""
    if forced is None:
        return chosen
    ids, chances = chosen
    return torch.full_like(ids, forced), None if chances is None else torch.ones_like(chances)


def _lengths(reader: Reader, ids: Tensor, ended: Tensor) -> Tensor:
    """Steps until and with `<end>`, or all of them."""
    first_end = is_end(reader, ids).int().argmax(1) + 1
    return torch.where(ended, first_end, ids.shape[1])


def banning(ban: Sequence[int], device: torch.device | str) -> Callable[[Tensor], Tensor]:
    """A function that puts the banned ids of logits (…, vocabulary) to −∞."""
    if not ban:
        return lambda logits: logits
    banned = torch.tensor(list(ban), device=device)
    return lambda logits: logits.index_fill(-1, banned, float("-inf"))
