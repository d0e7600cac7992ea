"""A batch of token ids for teacher forcing, from texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_viz.errors import ConfigError
from transformer_viz.tasks import Task
from transformer_viz.tracing.framing import padded
from transformer_viz.vocabulary import END, PAD_ID, START


@dataclass(frozen=True)
class Batch:
    """Ids and padding, (batch, length); padding is None where every row has the same length."""

    source: Tensor
    target_in: Tensor
    target_out: Tensor
    source_padding: Tensor | None
    target_padding: Tensor | None

    def to(self, device: torch.device) -> "Batch":
        """The same batch on a device; a GPU copies what is pinned while it computes."""
        return self._each(lambda part: part.to(device, non_blocking=device.type == "cuda"))

    def pin_memory(self) -> "Batch":
        """The same batch in memory that a GPU can read by itself."""
        return self._each(Tensor.pin_memory)

    def _each(self, act: Callable[[Tensor], Tensor]) -> "Batch":
        ids = (act(self.source), act(self.target_in), act(self.target_out))
        return Batch(*ids, *(None if part is None else act(part) for part in (self.source_padding, self.target_padding)))


def make_batch(task: Task, texts: Sequence[str]) -> Batch:
    """Source and answer of each text, framed; the decoder reads `<start> answer` and writes `answer <end>`.

    Raises:
        ConfigError: there is no text.
    """
    if not texts:
        raise ConfigError(
            f"task {task.name!r} has no text of this length to train on: all are held out. "
            "Take a larger alphabet, longer strings, or held_out_share 0."
        )
    symbols = [task.symbols(text) for text in texts]
    source = padded([task.source_vocabulary.encode(task.frame(s)) for s in symbols])
    answers = [task.answer(s) or [] for s in symbols]
    target_in = padded([task.target_vocabulary.encode([START, *a]) for a in answers])
    target_out = padded([task.target_vocabulary.encode([*a, END]) for a in answers])
    return Batch(source, target_in, target_out, _padding(source, symbols), _padding(target_in, answers))


def _padding(ids: Tensor, rows: Sequence[Sequence[str]]) -> Tensor | None:
    """Where a batch is padded; None where every row has the same length, which needs no mask."""
    return None if len({len(row) for row in rows}) == 1 else ids == PAD_ID
