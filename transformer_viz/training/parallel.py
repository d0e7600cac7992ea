"""Data-parallel training: several processes, one model, each batch's rows shared out (torch.distributed).

`torchrun --nproc-per-node N -m transformer_viz train …` starts the processes. Every one makes the whole batch, which is
cheap, and takes its rows, so every text is seen once. NCCL between GPUs, Gloo between CPUs.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist
from torch import nn

from transformer_viz.errors import DeviceError
from transformer_viz.training.batch import Batch
from transformer_viz.training.processes import Processes


@dataclass(frozen=True)
class Workers:
    """Which of how many processes this one is."""

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def share(self, batch: Batch) -> Batch:
        """This process's rows of a batch, padded as the whole batch is."""
        if self.count == 1:
            return batch
        rows = slice(self.rank, None, self.count)
        padding = {
            name: None if (whole := getattr(batch, name)) is None else whole[rows]
            for name in ("source_padding", "target_padding")
        }
        ids = {name: getattr(batch, name)[rows] for name in ("source", "target_in", "target_out")}
        return replace(batch, **ids, **padding)

    def wrapped(self, model: nn.Module, device: torch.device) -> nn.Module:
        """The model as it is called in training: gradients are averaged over the processes."""
        if self.count == 1:
            return model
        return nn.parallel.DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)

    def sum(self, numbers: Sequence[float], device: torch.device) -> list[float]:
        """Each number summed over the processes."""
        if self.count == 1:
            return list(numbers)
        summed = torch.tensor(numbers, dtype=torch.float32, device=device)
        dist.all_reduce(summed)
        return summed.tolist()

    def agree(self, number: int, device: torch.device) -> int:
        """The number of the first process; all must ask at the same step."""
        if self.count == 1:
            return number
        said = torch.tensor([number], device=device)
        dist.broadcast(said, src=0)
        return int(said.item())


ALONE = Workers()
_OVER: list[object] = []
"""Groups that are over, held until the process ends. Otherwise the last reference goes with the trained model: the group's
end then waits for its thread with Python's lock in hand, and that thread may wait for the lock to let a tensor go."""


@contextmanager
def workers(device: torch.device, processes: Processes) -> Generator[Workers]:
    """Joins the other processes that torchrun started, or is alone.

    Raises:
        DeviceError: the others cannot be joined.
    """
    if processes.count == 1:
        yield ALONE
        return
    try:
        if device.type == "cuda":
            torch.cuda.set_device(processes.local_rank)
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    except (RuntimeError, ValueError) as error:
        raise DeviceError(
            f"The other {processes.count - 1} of {processes.count} processes cannot be joined: {error}. Start all of them with "
            "torchrun, or unset WORLD_SIZE to train in one."
        ) from error
    try:
        yield Workers(dist.get_rank(), processes.count)
    finally:
        _OVER.append(dist.group.WORLD)
        dist.destroy_process_group()
