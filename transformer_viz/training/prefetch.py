"""Batches made by other processes while a GPU computes, which otherwise waits for Python.

A batch is a pure function of recipe and step, so it does not matter who makes it, or when.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator

import torch
from torch.utils.data import DataLoader, Dataset

from transformer_viz.errors import TransformerVizError
from transformer_viz.training.batch import Batch

_MOST_WORKERS = 8
_AHEAD = 4
"""Batches that each of them has ready."""

BatchAt = Callable[[int], Batch]


def num_workers(device: torch.device, n_trainings: int = 1) -> int:
    """How many processes should make batches for one training.

    None for a CPU, whose cores are all at work already, and none where a process cannot be forked safely.

    Args:
        device: where is trained.
        n_trainings: processes that train on this machine and share its cores.
    """
    can_fork = sys.platform == "linux" and "fork" in multiprocessing.get_all_start_methods()
    if device.type != "cuda" or not can_fork:
        return 0
    return max(0, min(_MOST_WORKERS, len(os.sched_getaffinity(0)) // n_trainings - 1))


class Prefetch:
    """A function from the step to its batch, best asked for one step after the other.

    Args:
        batch_at: makes the batch of a step; called in the other processes.
        steps: how many there are.
        makers: how many processes make them.
        is_pinned: whether batches lie in memory that a GPU can read by itself.
    """

    def __init__(self, batch_at: BatchAt, steps: int, workers_ahead: int, *, is_pinned: bool = True) -> None:
        self._steps = _Steps(batch_at, steps)
        self._workers, self._is_pinned = workers_ahead, is_pinned
        self._next = -1
        self._made: Iterator[Batch | TransformerVizError] = iter(())

    def __call__(self, step: int) -> Batch:
        """The batch of a step.

        Raises:
            TransformerVizError: what `batch_at` raises.
        """
        if step != self._next:
            # At the start, and where a training goes on after a stop.
            self._made = self._from(step)
        self._next = step + 1
        batch = next(self._made)
        if isinstance(batch, TransformerVizError):
            raise batch
        return batch

    def _from(self, step: int) -> Iterator[Batch | TransformerVizError]:
        return iter(
            DataLoader(
                self._steps,
                batch_size=None,
                sampler=range(step, len(self._steps)),
                num_workers=self._workers,
                prefetch_factor=_AHEAD,
                pin_memory=self._is_pinned,
                multiprocessing_context="fork",
            )
        )


class _Steps(Dataset[Batch | TransformerVizError]):
    def __init__(self, batch_at: BatchAt, steps: int) -> None:
        self.batch_at, self.steps = batch_at, steps

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, index: int) -> Batch | TransformerVizError:
        # Raised over there, it would arrive with a traceback for a message.
        try:
            return self.batch_at(index)
        except TransformerVizError as error:
            return error
