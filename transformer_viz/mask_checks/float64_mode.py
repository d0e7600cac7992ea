"""Runs somebody's torch code in float64, whatever precision it is written for.

Rounding is then some 10^-14 of a number, in a model of bfloat16 too, and what remains of a change is the model's
own doing. Every torch function is handed float64 in place of a coarser type, and told float64 where it is told one.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_viz.mask_checks.rounding import rounded
from transformer_viz.tracing.adapters.running_modules import is_parameter

_WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}
_CASTS = {torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16}
# A seed gives other numbers in another type.
_RANDOM = {torch.rand, torch.randn}
# What these give shares its memory with what they are given: a wider copy would break that bond.
_VIEWS = frozenset(
    "view reshape transpose permute t unbind split chunk expand expand_as squeeze unsqueeze narrow select "
    "detach flatten swapaxes movedim view_as tensor_split".split()
)


class Float64Mode(TorchFunctionMode):
    """Within this context torch computes in float64.

    Attributes:
        computed_in: float32 if some function knows no float64 and was given float32, which it rounds to.
        coarsest: the coarsest floating type that the code itself uses.
        came_in: of each tensor of a coarser type that came from elsewhere, and is no parameter, its type, shape and sum. Where
            these differ between two questions, something was computed outside of this context. None: it is not watched.

    Without `sets_default` other threads are left alone. What torch makes of whole numbers is then rounded to float32 before
    it is widened: each number by itself, so alike whatever the shape.
    """

    def __init__(self, *, is_watching: bool = False, sets_default: bool = True) -> None:
        super().__init__()
        self._sets_default = sets_default
        self.computed_in = self.coarsest = torch.float64
        self.came_in: set[tuple[torch.dtype, torch.Size, float]] | None = set() if is_watching else None

    def __enter__(self) -> "Float64Mode":
        # What torch makes of whole numbers and Python's own. It holds for the whole process, therefore for one question only.
        self._default = torch.get_default_dtype()
        if self._sets_default:
            torch.set_default_dtype(torch.float64)
        return super().__enter__()

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        super().__exit__(exc_type, exc_val, exc_tb)
        torch.set_default_dtype(self._default)

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "__get__":  # a property: `weight.dtype` is what it is when the weight is used
            found = func(*args, **options)
            return _WIDER.get(found, found) if isinstance(found, torch.dtype) else found
        if func in _CASTS:
            return args[0].double()
        if func in _RANDOM:
            with rounded("nearest"):  # drawn numbers are what they are, however the rest is rounded
                return self._widened(func(*args, **{"dtype": self._default, **options}))
        if name in _VIEWS or (name == "__getitem__" and _is_slice(args[1])):
            return func(*args, **options)
        if _writes(name) and isinstance(args[0], Tensor) and args[0].dtype in _WIDER:
            return _written(func, args, options)
        with _no_autocast():
            return self._widened(self._called(func, self._widened(args), self._widened(options)))

    def _called(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        try:
            return func(*args, **options)
        except Exception:
            found = _called_in_float32(func, args, options)
            if found is None:
                raise
            self.computed_in = torch.float32
            return found

    def _widened(self, value: Any) -> Any:
        """Tensors and types in plain tuples, lists and dictionaries."""
        if isinstance(value, Tensor):
            wider = _WIDER.get(value.dtype)
            if wider is None:
                return value
            if value.is_floating_point():
                self.coarsest = coarser(self.coarsest, value.dtype)
                self._watch(value)
            return value.to(wider)
        kind = type(value)
        if kind is tuple or kind is list:
            return kind([self._widened(item) for item in value])
        if kind is dict:
            return {key: self._widened(item) for key, item in value.items()}
        return _WIDER.get(value, value) if kind is torch.dtype else value

    def _watch(self, value: Tensor) -> None:
        if self.came_in is not None and not is_parameter(value) and value.unique().numel() > 1:
            self.came_in.add((value.dtype, value.shape, float(value.double().sum())))


def coarser(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    """The one of two floating types with fewer digits."""
    return max(a, b, key=lambda dtype: torch.finfo(dtype).eps)


def _called_in_float32(func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """For the few functions that know no float64; None where it does not help."""

    def narrow(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.float() if value.dtype == torch.float64 else value
        return torch.float32 if value is torch.float64 else value

    try:
        return func(*_each(args, narrow), **_each(options, narrow))
    except Exception:
        return None


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """`change` of everything in plain tuples, lists and dictionaries."""
    if type(value) is tuple or type(value) is list:
        return type(value)(_each(item, change) for item in value)
    if type(value) is dict:
        return {key: _each(item, change) for key, item in value.items()}
    return change(value)


def _is_slice(index: Any) -> bool:
    """Tensors and lists as an index gather into new memory."""
    return not any(isinstance(each, (Tensor, list)) for each in (index if isinstance(index, tuple) else (index,)))


def _writes(name: str) -> bool:
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _written(func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Writes into a tensor that outlives this call (a cache that is a buffer) and so keeps its type."""
    into = args[0]

    def fitting(value: Any) -> Any:
        return value.to(into.dtype) if isinstance(value, Tensor) and value.is_floating_point() else value

    return func(into, *_each(args[1:], fitting), **_each(options, fitting))


def _no_autocast() -> ExitStack:
    """Autocast would take float64 down to a half again."""
    stack = ExitStack()
    for device in ("cpu", "cuda"):
        if torch.is_autocast_enabled(device):
            stack.enter_context(torch.autocast(device, enabled=False))
    return stack
