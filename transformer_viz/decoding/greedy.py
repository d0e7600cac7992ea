"""Greedy decoding of a padded batch."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from transformer_viz.decoding.reader import Reader
from transformer_viz.decoding.stepwise import Choose, Decoded, banning, stepwise


def greedy(
    reader: Reader, source: Tensor, source_padding: Tensor | None, *, ban: Sequence[int] = (), **options: Any
) -> Decoded:
    """Writes the most probable token again and again, but none of `ban`; other arguments as of `stepwise`."""
    return stepwise(reader, source, source_padding, most_probable(reader, source.device, ban), **options)


def most_probable(reader: Reader, device: torch.device, ban: Sequence[int] = ()) -> Choose:
    """Chooses the most probable token; of equal ones the lowest id."""
    without_banned = banning(ban, device, is_checked=reader.rules is not None)
    # argmax gives the first of several equal maxima, so ties take the lowest id.
    return lambda logits: (without_banned(logits).argmax(-1), None)
