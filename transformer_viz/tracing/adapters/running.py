"""Which modules of a model are running, and so which layer a call of attention belongs to."""

import threading
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from torch import nn

Place = tuple[tuple[str, int], ...]
"""The `nn.ModuleList`s around a call, the outermost first, each with the index of the entry that is running."""


@dataclass(frozen=True)
class _Call:
    """A module that is running, and what it was called with."""

    name: str
    module: nn.Module
    args: tuple
    kwargs: dict[str, Any]


class Running:
    """The modules that are running, and the names of all that ever ran."""

    def __init__(self, model: nn.Module) -> None:
        self.ran: set[str] = set()
        self._stack: list[_Call] = []
        self._lists = {name for name, module in model.named_modules() if isinstance(module, nn.ModuleList)}

    @property
    def innermost(self) -> str:
        """The name of the module that is running; empty for the model itself."""
        return self._stack[-1].name if self._stack else ""

    def given(self, names: Collection[str]) -> list[Any]:
        """What the innermost module was given for those of its parameters that have one of these names."""
        if not self._stack:
            return []
        call = self._stack[-1]
        bound = signature(call.module.forward).bind(*call.args, **call.kwargs)
        bound.apply_defaults()
        return [value for name, value in bound.arguments.items() if name in names]

    @property
    def place(self) -> Place:
        """Where the innermost module stands. A layer's number is that of the modules around it, where several share one."""
        return tuple(dict.fromkeys(entry for call in self._stack for entry in self._entries(call.name)))

    def enter(self, name: str, module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        self._stack.append(_Call(name, module, args, kwargs))
        self.ran.add(name)

    def leave(self) -> None:
        self._stack.pop()

    def _entries(self, name: str) -> Iterator[tuple[str, int]]:
        parts = name.split(".")
        for i, part in enumerate(parts):
            if (above := ".".join(parts[:i])) in self._lists:
                yield above, int(part)


@contextmanager
def followed(model: nn.Module, running: Running) -> Generator[None]:
    """Keeps `running` up to date while `model` runs in this thread, and leaves nothing behind."""
    mine, handles = threading.get_ident(), []

    def enter(name: str):
        def hook(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
            if threading.get_ident() == mine:
                running.enter(name, module, args, kwargs)

        return hook

    def leave(module: nn.Module, args: tuple, output: object) -> None:
        if threading.get_ident() == mine:
            running.leave()

    try:
        for name, module in model.named_modules():
            if not isinstance(module, torch.jit.ScriptModule):
                handles.append(module.register_forward_pre_hook(enter(name), prepend=True, with_kwargs=True))
                handles.append(module.register_forward_hook(leave, always_call=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


def numbers(places: Sequence[Place]) -> tuple[int, ...] | None:
    """The numbers of layers that stand at these places: their indices in the outermost list that tells them apart.

    None where no list does: layers that share one module, or that stand in several lists.
    """
    for level in zip(*places, strict=False):
        found = tuple(index for _, index in level)
        if len({name for name, _ in level}) > 1:
            return None
        if len(set(found)) == len(found):
            return found
        if len(set(found)) > 1:
            return None
    return None
