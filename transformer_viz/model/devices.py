"""Chooses the device on which a model runs, names it for people, and turns out-of-memory errors into sentences."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import torch

from transformer_viz.errors import DeviceError, OptionError, join_names
from transformer_viz.terms import DEVICES

_SMALL = 20_000_000
_NO_MEMORY = re.compile("can't allocate memory|out of memory|ALLOC_FAILED")
_ASKED = re.compile(r"(?:tried to allocate|unable to allocate) ([\d.]+ ?[A-Za-z]+)", re.IGNORECASE)
_ADVICE = "Shorten the text, decode fewer texts at once, end what else takes memory there, or choose another device."


def available() -> list[str]:
    """Names that `resolve` accepts on this machine, besides `auto`."""
    return [name for name in DEVICES[1:] if _is_there(name)]


def resolve(name: str) -> torch.device:
    """`auto` is cuda, then mps, then cpu.

    Raises:
        OptionError: the name is none of the known ones.
        DeviceError: the device is not on this machine.
    """
    if name == "auto":
        return torch.device(next(d for d in ("cuda", "mps", "cpu") if _is_there(d)))
    if name not in DEVICES:
        raise OptionError(f"device {name!r} is not known; choose one of {join_names(DEVICES)}")
    if not _is_there(name):
        raise DeviceError(
            f"device {name!r} is not available here; available are {join_names(available())}. "
            "For a GPU install the torch build that fits its driver, or choose device auto."
        )
    return torch.device(name)


def title(device: torch.device) -> str:
    """The name of the device on the screen: `cuda · NVIDIA H200` or `cpu`."""
    if device.type == "cuda":
        return f"cuda · {torch.cuda.get_device_name(device)}"
    return "mps · Apple GPU" if device.type == "mps" else "cpu"


@contextmanager
def memory_errors(device: torch.device, advice: str = _ADVICE) -> Generator[None]:
    """Turns an out-of-memory error into a clear message, and frees what can be freed.

    Args:
        device: where is computed.
        advice: what to do about it, in a sentence.

    Raises:
        DeviceError: memory has run out, the device's or the machine's.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        if device.type == "cuda":
            torch.cuda.empty_cache()
        is_of_machine, asked = isinstance(error, MemoryError) or "CPUAllocator" in str(error), _ASKED.search(str(error))
        words = f"{'This machine' if is_of_machine else title(device)} ran out of memory"
        raise DeviceError(f"{words}{f': {asked[1]} were asked for' if asked else ''}. {advice}") from error


def is_out_of_memory(error: BaseException) -> bool:
    """Tells whether an error says that memory has run out; torch has no error class for the CPU's, nor for a driver's."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)) is not None
    )


def memory_of_machine() -> int | None:
    """Bytes that are free now; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


class OnDevice(Protocol):
    """A model with a known device and size."""

    @property
    def device(self) -> torch.device:
        """The device that it is on."""
        ...

    @property
    def n_parameters(self) -> int:
        """Trained numbers."""
        ...


@contextmanager
def running(model: OnDevice, *, has_gradients: bool = False) -> Generator[None]:
    """The context in which a model is run: without autograd, with `memory_errors`, and a small model on one thread of the CPU.

    There more threads are no faster, and where another program is busy, the wait for each other at every one of a hundred tiny
    operations makes them 50 times slower.

    Args:
        model: the model.
        has_gradients: whether what is computed inside may switch gradients on (`torch.enable_grad`): tensors that are made in
            inference mode cannot have any.

    Raises:
        DeviceError: memory has run out.
    """
    n_threads, is_small = torch.get_num_threads(), model.device.type == "cpu" and model.n_parameters < _SMALL
    try:
        if is_small:
            torch.set_num_threads(1)
        with memory_errors(model.device), torch.inference_mode(not has_gradients), torch.no_grad():
            yield
    finally:
        if is_small:
            torch.set_num_threads(n_threads)


def leave_one_processor() -> None:
    """Within, this thread computes on all processors of the CPU but one, where there are several."""
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))


def _is_there(name: str) -> bool:
    if name == "cuda":
        return torch.cuda.is_available()
    if name == "mps":
        return torch.backends.mps.is_available()
    return name == "cpu"
