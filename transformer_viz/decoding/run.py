"""`run`: the one way in which a batch goes through a model, read in one pass or written token by token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from transformer_viz.decoding.reader import Reader
from transformer_viz.decoding.sampling import Sampling
from transformer_viz.decoding.stepwise import OnStep, stepwise
from transformer_viz.decoding.token_batch import TokenBatch
from transformer_viz.model.tap import Tap


@dataclass(frozen=True)
class Ran:
    """A batch that was run.

    Attributes:
        batch: with all that was written.
        logits: of a batch that was read in one pass float (text, place, vocabulary): after each place of the target, or of an
            encoder alone for each place of the source; None where the model wrote, or says nothing of its places.
        probabilities: float (text, step), of each written token under the distribution that it was drawn from, or None.
    """

    batch: TokenBatch
    logits: Tensor | None = None
    probabilities: Tensor | None = None


def run(
    reader: Reader,
    batch: TokenBatch,
    *,
    tap: Tap | None = None,
    on_step: OnStep | None = None,
    max_length: int = 0,
    limits: Sequence[int] | None = None,
    sampling: Sampling | None = None,
    prefix: Sequence[int] = (),
    ban: Sequence[int] = (),
    cached: bool = True,
) -> Ran:
    """Reads a batch whose target is given in one pass, as in training (teacher forcing); else the model writes it.

    Args:
        reader: in eval mode, unless it is being trained.
        batch: the texts.
        tap: sees and may change every attention.
        on_step: is called after each row (see `OnStep`); all rows of a given target have negative numbers.
        max_length: the most tokens to write, as `stepwise` has it; so have the keywords that follow.
        limits: for each text how many of the written tokens count; None = all.
        sampling: how to draw.
        prefix: ids that every text begins with.
        ban: ids that are never written.
        cached: False computes every row again at every step.
    """
    if not batch.is_given:
        how = {"sampling": sampling, "prefix": prefix, "ban": ban, "cached": cached}
        decoded = stepwise(reader, batch, max_length=max_length, tap=tap, on_step=on_step, **how)
        lengths = decoded.lengths.tolist()
        lengths = lengths if limits is None else [*map(min, lengths, limits)]
        return Ran(batch.after(decoded.ids, lengths), None, decoded.probabilities)
    logits, n_rows = read(reader, batch, tap), batch.target.shape[1]
    if on_step is not None and logits is not None:
        for row in range(n_rows):
            on_step(row - n_rows, logits[:, row], batch.written[:, row])
    return Ran(batch, logits)


def read(reader: Reader, batch: TokenBatch, tap: Tap | None = None) -> Any:
    """Reads a batch in one pass; the logits of all places, as `Ran` has them."""
    source_padding, target_padding = batch.paddings
    memory = reader.encode(batch.source, source_padding, tap=tap)
    if not reader.kind.writes:
        return memory
    return reader.decode(batch.target, memory, source_padding, target_padding, tap=tap)
