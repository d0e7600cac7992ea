"""Follows the modules of a model that run in this thread, and their place among its layers."""

import threading
from collections.abc import Collection, Generator
from contextlib import contextmanager
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

Place = tuple[tuple[str, int], ...]
"""The `nn.ModuleList`s around a call, the outermost first, each with the index of the entry that is running."""


class _Running(NamedTuple):
    """A module that is running, and its arguments."""

    name: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class RunningModules:
    """The stack of modules that run in this thread.

    Attributes:
        ran: names of all that ever ran.
    """

    def __init__(self, model: nn.Module) -> None:
        self.ran: set[str] = set()
        self._stack: list[_Running] = []
        self._modules = dict(model.named_modules())
        self._places: dict[str, Place] = {}

    @contextmanager
    def followed(self) -> Generator[None]:
        """Follows what runs within, and leaves nothing behind."""
        mine, handles = threading.get_ident(), []

        def enter(name: str) -> Any:
            def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
                if threading.get_ident() == mine:
                    self._stack.append(_Running(name, module, args, kwargs))
                    self.ran.add(name)

            return hook

        def leave(module: nn.Module, args: tuple[Any, ...], output: object) -> None:
            if threading.get_ident() == mine:
                self._stack.pop()

        try:
            for name, module in self._modules.items():
                if not isinstance(module, torch.jit.ScriptModule) and not _is_plain(module):
                    handles.append(module.register_forward_pre_hook(enter(name), prepend=True, with_kwargs=True))
                    handles.append(module.register_forward_hook(leave, always_call=True))
            yield
        finally:
            for handle in handles:
                handle.remove()
            self._stack.clear()

    @property
    def innermost(self) -> str:
        """The name of the module that is running; empty for the model itself."""
        return self._stack[-1].name if self._stack else ""

    @property
    def first_input(self) -> Tensor | None:
        """The first tensor that the innermost module was given."""
        if not self._stack:
            return None
        running = self._stack[-1]
        return next((value for value in (*running.args, *running.kwargs.values()) if isinstance(value, Tensor)), None)

    @property
    def place(self) -> Place:
        """The place of the innermost module among the layers. Where layers share it, the modules around it give the number."""
        return tuple(dict.fromkeys(place for running in self._stack for place in self._places_of(running.name)))

    def _places_of(self, name: str) -> Place:
        """The lists around the module of this name, the outermost first."""
        if name not in self._places:
            parts = name.split(".") if name else []
            above = [(".".join(parts[:i]), part) for i, part in enumerate(parts)]
            self._places[name] = tuple((of, int(part)) for of, part in above if isinstance(self._modules[of], nn.ModuleList))
        return self._places[name]

    def given(self, names: Collection[str]) -> list[Any]:
        """The arguments that the innermost module was given for those of its parameters that have one of these names."""
        if not self._stack:
            return []
        running = self._stack[-1]
        bound = signature(running.module.forward).bind(*running.args, **running.kwargs)
        bound.apply_defaults()
        return [value for name, value in bound.arguments.items() if name in names]


def _is_plain(module: nn.Module) -> bool:
    """Tells whether it is a linear layer, a norm or the like of torch: hooks on all of them would take a fifth of a pass."""
    return type(module).__module__.startswith("torch.nn.modules.") and next(module.children(), None) is None
