"""The loop that greedy decoding and sampling share: one new query row a step, the rest from the cache.

Everything stays on the device until the end. The one question asked of it at each step
is whether every sentence has ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Required, TypedDict, Unpack

import torch
from torch import Tensor

from transformer_viz.decoding.dropping import Dropping
from transformer_viz.decoding.reader import Reader, SoFar, is_end, nothing_left, opening, read_opening
from transformer_viz.model.tap import Tap


@dataclass(frozen=True)
class Decoded:
    """What a decoding wrote.

    Attributes:
        ids: int (batch, step); after a sentence's `<end>` come `<pad>`s.
        lengths: int (batch,); steps of each sentence, its `<end>` included.
        ended: bool (batch,); False where the length limit stopped the sentence.
        logits: float (batch, step, target vocabulary), before any ban or truncation; no step where a log took them.
        chances: float (batch, step), the probability of each token under the distribution that it was
            drawn from, or None where nothing was drawn.
    """

    ids: Tensor
    lengths: Tensor
    ended: Tensor
    logits: Tensor
    probabilities: Tensor | None = None
    given: Tensor | None = None
    """int (batch, position): what the reader was given to read after its very first token, before it wrote; None = nothing."""


Log = Callable[[Tensor, Tensor], None]
"""Takes logits (batch, vocabulary) and the ids (batch,) that followed, row after row; the given rows first."""


class StepOptions(TypedDict, total=False):
    """Keywords of `stepwise`.

    Attributes:
        max_length: the most tokens to write, `<end>` included.
        prefix: ids that every sentence begins with, whatever the model would choose; none by default.
        tap: sees every attention of the encoder and of every step.
        cached: False computes every row again at every step. Only then may a tap let a query see a later token;
            the tap's last pass is then the one over everything that was read.
        log: takes the logits of every row, so that they need not all be kept.
        after_step: sees the ids (batch,) of every step; where it returns False nothing more is written.
        drop_ended: of cached decoding: sentences that have ended are read no further; a tap, which may change nothing, sees
            zeros in their rows, and the log any logits.
    """

    max_length: Required[int]
    prefix: Sequence[int]
    tap: Tap | None
    cached: bool
    log: Log | None
    after_step: Callable[[Tensor], bool] | None
    drop_ended: bool


@dataclass(frozen=True, kw_only=True)
class _Options:
    """`StepOptions` with their defaults."""

    max_length: int
    prefix: Sequence[int] = ()
    tap: Tap | None = None
    cached: bool = True
    log: Log | None = None
    after_step: Callable[[Tensor], bool] | None = None
    drop_ended: bool = False


Choose = Callable[[Tensor], tuple[Tensor, Tensor | None]]
"""From logits (batch, vocabulary) to the chosen ids (batch,) and, where they were drawn, their chances (batch,)."""


@torch.inference_mode()
def stepwise(
    reader: Reader,
    source: Tensor,
    source_padding: Tensor | None,
    choose: Choose,
    **options: Unpack[StepOptions],
) -> Decoded:
    """Writes token after token.

    Args:
        reader: in eval mode; a model in train mode would decode through dropout.
        source: int (batch, source), framed.
        source_padding: bool (batch, source), or None when nothing is padded.
        choose: picks the next token of every sentence.
        options: see `StepOptions`.
    """
    how = _Options(**options)
    assert not reader.training, "decoding needs a model in eval mode"
    # Of one sentence it is enough to look at the token: nothing is written after its end.
    is_alone, n_forced = len(source) == 1, len(how.prefix)
    begin, read = _read(reader, source, source_padding, how)
    first = opening(reader, source)
    token, row = first[:, -1], _logged(begin(first), first, how.log)
    ended, is_over = torch.zeros(len(source), dtype=torch.bool, device=source.device), False
    written, logits, probabilities = list[Tensor](), list[Tensor](), list[Tensor]()
    log = how.log or (lambda row, token: logits.append(row))
    choose_freely = _by_rules(reader, choose, partial(_so_far, first, written, how.max_length, source, source_padding))
    for step in range(how.max_length):
        if step > 0:
            row = read(token, ended)
        chosen, chance = choose_freely(row) if step >= n_forced else _forced(choose(row), how.prefix[step])
        token = chosen if is_alone else chosen.masked_fill(ended, reader.pad_id)
        written.append(token)
        log(row, token)
        if chance is not None:
            probabilities.append(chance)
        if is_alone:
            is_over = token.item() in reader.end_ids
        else:
            ended = ended | is_end(reader, token)
            is_over = bool(ended.all())
        if is_over or (how.after_step is not None and not how.after_step(token)):
            break
    ids = torch.stack(written, 1)
    ended = torch.tensor([is_over]) if is_alone else ended
    lengths = torch.tensor([len(written)]) if is_alone else _lengths(reader, ids, ended)
    kept = torch.stack(logits, 1) if logits else row.new_empty(len(source), 0, row.shape[-1])
    drawn = torch.stack(probabilities, 1) if probabilities else None
    return Decoded(ids, lengths, ended, kept, drawn, first[:, 1:] if first.shape[1] > 1 else None)


def _read(
    reader: Reader, source: Tensor, source_padding: Tensor | None, how: _Options
) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]:
    """Two functions: one reads the opening, (batch, position), and returns the logits after each of its tokens; the other reads
    one more token of every sentence, (batch,), and knows which have ended, bool (batch,): (batch, vocabulary).
    """
    tap = how.tap
    memory = reader.encode(source, source_padding, tap=tap)
    if how.cached:
        decoder = reader.incremental(memory, source_padding)
        dropping = Dropping(decoder, len(source), tap)
        read = dropping.read if how.drop_ended else lambda token, ended: decoder.read(token, tap=tap)
        return lambda first: read_opening(reader, decoder, first, tap), read
    tokens: list[Tensor] = []
    padding: list[Tensor] = []

    def recompute(more: Tensor, is_padding: Tensor) -> Tensor:
        tokens.append(more)
        padding.append(is_padding)
        return reader.decode(torch.cat(tokens, 1), memory, source_padding, torch.cat(padding, 1), tap=tap)

    def begin(first: Tensor) -> Tensor:
        is_prompt = reader.kind.has_prompt and source_padding is not None
        return recompute(first, source_padding if is_prompt else torch.zeros_like(first, dtype=torch.bool))

    return begin, lambda token, ended: recompute(token[:, None], ended[:, None])[:, -1]


def _logged(given: Tensor, first: Tensor, log: Log | None) -> Tensor:
    """Of the logits after each token of the opening the last row; the others, whose next token is known, are for the log."""
    for place in range(first.shape[1] - 1):
        if log is not None:
            log(given[:, place], first[:, place + 1])
    return given[:, -1]


def _so_far(first: Tensor, written: Sequence[Tensor], max_length: int, source: Tensor, source_padding: Tensor | None) -> SoFar:
    """What rules are told, after what was read first and then written."""
    ids = torch.cat([first, *(each[:, None] for each in written)], 1)
    return SoFar(ids, first.shape[1], max_length, source, source_padding)


def _forced(chosen: tuple[Tensor, Tensor | None], forced: int) -> tuple[Tensor, Tensor | None]:
    """The forced id, which is certain, instead of what was chosen."""
    ids, chances = chosen
    return torch.full_like(ids, forced), None if chances is None else torch.ones_like(chances)


def _by_rules(reader: Reader, choose: Choose, so_far: Callable[[], SoFar]) -> Choose:
    """Chooses from the logits as the reader's own rules leave them."""
    rules = reader.rules
    return choose if rules is None else lambda row: choose(_possible(rules(so_far(), row)))


def _lengths(reader: Reader, ids: Tensor, ended: Tensor) -> Tensor:
    """Steps until and with `<end>`, or all of them."""
    first_end = is_end(reader, ids).int().argmax(1) + 1
    return torch.where(ended, first_end, ids.shape[1])


def _possible(logits: Tensor) -> Tensor:
    """These logits (batch, vocabulary), each row of which leaves something that may be written.

    Raises:
        OptionError: one leaves nothing.
    """
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
