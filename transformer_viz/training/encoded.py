"""Texts encoded once, where they are trained on: a batch of them is then a choice of rows, made on the device itself."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_viz.tasks import Task
from transformer_viz.training.batch import Batch, make_batch
from transformer_viz.vocabulary import PAD_ID

AT_ONCE = 1000
"""Texts encoded together: their lists of ids take ten times the memory of what they become."""


class EncodedTexts:
    """All texts of an epoch as ids; `rows(numbers)` is `make_batch` of those texts.

    Args:
        task: frames, answers and encodes the texts.
        texts: at least one.
        device: where the ids lie, four bytes each.
        at_once: how many texts are encoded together.

    Raises:
        ConfigError: there is no text.
    """

    def __init__(self, task: Task, texts: Sequence[str], device: torch.device, at_once: int = AT_ONCE) -> None:
        parts = [make_batch(task, texts[start : start + at_once]) for start in range(0, len(texts) or 1, at_once)]
        ids = [_joined([getattr(part, name) for part in parts]) for name in ("source", "target_in", "target_out")]
        # Lengths stay on this side: to ask the device for one would be to wait for it.
        self._lengths = [(part != PAD_ID).sum(1).numpy() for part in ids]
        self._ids = [part.to(device) for part in ids]
        self._device = device

    def rows(self, numbers: np.ndarray) -> Batch:
        """The batch of the texts with these numbers, int (batch,), as wide as the longest of them."""
        where = torch.from_numpy(numbers).to(self._device)
        source, target_in, target_out = (
            part[where, : int(lengths[numbers].max())].long() for part, lengths in zip(self._ids, self._lengths, strict=True)
        )
        paddings = [
            None if np.ptp(lengths[numbers]) == 0 else ids == PAD_ID
            for ids, lengths in zip((source, target_in), self._lengths, strict=False)
        ]
        return Batch(source, target_in, target_out, *paddings)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """(batch, length) of different lengths -> (all, longest), int32."""
    longest = max(part.shape[1] for part in parts)
    return torch.cat([F.pad(part, (0, longest - part.shape[1]), value=PAD_ID).int() for part in parts])
