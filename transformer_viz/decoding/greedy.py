"""Greedy decoding of a padded batch."""

from collections.abc import Sequence
from typing import Unpack

from torch import Tensor

from transformer_viz.decoding.reader import Reader
from transformer_viz.decoding.stepwise import Decoded, StepOptions, banning, stepwise


def greedy(
    reader: Reader,
    source: Tensor,
    source_padding: Tensor | None,
    *,
    ban: Sequence[int] = (),
    **options: Unpack[StepOptions],
) -> Decoded:
    """Writes the most probable token again and again; of equal ones the lowest id. Arguments as `stepwise`.

    Args:
        ban: ids that are never chosen.
    """
    without = banning(ban, source.device, is_checked=reader.rules is not None)

    def choose(logits: Tensor) -> tuple[Tensor, None]:
        # argmax gives the first of several equal maxima, so ties take the lowest id.
        return without(logits).argmax(-1), None

    return stepwise(reader, source, source_padding, choose, **options)
