"""Greedy decoding of a padded batch."""

from collections.abc import Sequence

from torch import Tensor

from transformer_viz.decoding.reader import Reader
from transformer_viz.decoding.stepwise import Decoded, banning, stepwise
from transformer_viz.model.tap import Tap


def greedy(
    reader: Reader,
    source: Tensor,
    source_padding: Tensor | None,
    *,
    max_length: int,
    prefix: Sequence[int] = (),
    ban: Sequence[int] = (),
    tap: Tap | None = None,
    cached: bool = True,
) -> Decoded:
    """Writes the most probable token again and again; of equal ones the lowest id. Arguments as `stepwise`.

    Args:
        ban: ids that are never chosen.
    """
    without = banning(ban, source.device)

    def choose(logits: Tensor) -> tuple[Tensor, None]:
        # argmax gives the first of several equal maxima, so ties take the lowest id.
        return without(logits).argmax(-1), None

    return stepwise(reader, source, source_padding, choose, max_length=max_length, prefix=prefix, tap=tap, cached=cached)
