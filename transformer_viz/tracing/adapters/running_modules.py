"""Which modules of a model are running, and what they call in torch: in which layer and module attention is computed.

An adapter knows one way in which attention is called. Attention that is called in another way would be missing without a word.
But however it is called, its weights come from a softmax, and they multiply the values as a matrix.
"""

import threading
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

Place = tuple[tuple[str, int], ...]
"""The `nn.ModuleList`s around a call, the outermost first, each with the index of the entry that is running."""
_SOFTMAX = {"softmax", "special_softmax"}
_PRODUCT = {"matmul", "__matmul__", "__rmatmul__", "linalg_matmul", "bmm", "mm", "einsum"}
_FUSED = {"scaled_dot_product_attention", "multi_head_attention_forward"}


class _Running(NamedTuple):
    """A module that is running, and what it was called with."""

    name: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class RunningModules(TorchFunctionMode):
    """The modules of a model that are running in this thread; while it is entered, also what they call in torch.

    Attributes:
        ran: names of all that ever ran.
        attending: names of those in which weights from a softmax were multiplied with a matrix, in order.
        softmax_columns: by name of a module, the number of columns of its last softmax.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.ran: set[str] = set()
        self.attending: dict[str, None] = {}
        self.softmax_columns: dict[str, int] = {}
        self._stack: list[_Running] = []
        self._lists = {name for name, module in model.named_modules() if isinstance(module, nn.ModuleList)}
        self._weights = WeakTensorKeyDictionary()

    @contextmanager
    def followed(self, model: nn.Module) -> Generator[None]:
        """Follows what runs within, and leaves nothing behind."""
        mine, handles = threading.get_ident(), []

        def enter(name: str):
            def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
                if threading.get_ident() == mine:
                    self._stack.append(_Running(name, module, args, kwargs))
                    self.ran.add(name)

            return hook

        def leave(module: nn.Module, args: tuple[Any, ...], output: object) -> None:
            if threading.get_ident() == mine:
                self._stack.pop()

        try:
            for name, module in model.named_modules():
                if not isinstance(module, torch.jit.ScriptModule):
                    handles.append(module.register_forward_pre_hook(enter(name), prepend=True, with_kwargs=True))
                    handles.append(module.register_forward_hook(leave, always_call=True))
            with self:
                yield
        finally:
            for handle in handles:
                handle.remove()

    @property
    def innermost(self) -> str:
        """The name of the module that is running; empty for the model itself."""
        return self._stack[-1].name if self._stack else ""

    @property
    def place(self) -> Place:
        """The place of the innermost module among the layers. Where layers share it, the modules around it give the number."""
        places: dict[tuple[str, int], None] = {}
        for running in self._stack:
            parts = running.name.split(".")
            for i, part in enumerate(parts):
                if (above := ".".join(parts[:i])) in self._lists:
                    places[above, int(part)] = None
        return tuple(places)

    def given(self, names: Collection[str]) -> list[Any]:
        """What the innermost module was given for those of its parameters that have one of these names."""
        if not self._stack:
            return []
        running = self._stack[-1]
        bound = signature(running.module.forward).bind(*running.args, **running.kwargs)
        bound.apply_defaults()
        return [value for name, value in bound.arguments.items() if name in names]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Weights stay weights through dropout, a cast, a view or a mask, until a matrix is multiplied."""
        returned = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in _FUSED:
            self.attending[self.innermost] = None
        elif name in _SOFTMAX and isinstance(returned, Tensor):
            self.softmax_columns[self.innermost] = returned.shape[-1]
            self._weights[returned] = True
        elif self._weights:
            given = [tensor for tensor in _tensors((args, kwargs)) if tensor.is_floating_point()]
            weights = [tensor for tensor in given if tensor in self._weights]
            if weights and name in _PRODUCT:
                if not any(map(is_parameter, given)):  # a projection, not values
                    self.attending[self.innermost] = None
            elif weights:
                for made in _tensors(returned):
                    if len(weights) == len(given) or made.numel() == weights[0].numel():
                        self._weights[made] = True
        return returned


def is_parameter(tensor: Tensor) -> bool:
    """Whether a tensor is a parameter or a view of one; torch has no public name for what a view is of."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def _tensors(given: Any) -> Iterator[Tensor]:
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, dict):
        yield from _tensors([*given.values()])
    elif isinstance(given, list | tuple):
        for part in given:
            yield from _tensors(part)
