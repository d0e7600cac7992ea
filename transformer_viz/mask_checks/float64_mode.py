"""Runs somebody's torch code in float64, whatever precision it is written for.

Rounding is then some 10^-14 of a number, in a model of bfloat16 too, and what remains of a change is the model's
own doing. Every torch function is handed float64 in place of a coarser type, and told float64 where it is told one. Directed
rounding tells how many digits of an answer survive when every sum and product is rounded the other way; shaking, what a last
digit of the numbers on the way makes of each number of the answer.
"""

import ctypes
import platform
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_viz.readers.modules.operators import is_parameter

Direction = Literal["nearest", "up", "down"]

_DIRECTIONS: list[Direction] = ["nearest", "down", "up"]
_UNITS = {"x86_64": 0x400, "aarch64": 0x400000, "arm64": 0x400000}
"""By processor: `FE_DOWNWARD` of C's <fenv.h>. `FE_TONEAREST` is 0 and `FE_UPWARD` twice as much, on Linux and macOS."""
_UNIT = _UNITS.get(platform.machine())
_C_LIBRARY = ctypes.CDLL(None) if _UNIT and platform.system() in ("Linux", "Darwin") else None


@contextmanager
def rounded(direction: Direction) -> Generator[None]:
    """This thread's processor rounds in this direction within this context, whoever computes: numpy, torch, a runtime.

    Other threads go on as they were, but a thread that is started within would round this way for good: run before, with the
    same shapes, whatever is run within, so that its pool of threads is there already. Where the C library or the processor is
    another, and on a GPU, nothing changes.
    """
    if _UNIT is None or not hasattr(_C_LIBRARY, "fesetround"):
        yield
        return
    before = _C_LIBRARY.fegetround()
    _C_LIBRARY.fesetround(_UNIT * _DIRECTIONS.index(direction))
    try:
        yield
    finally:
        _C_LIBRARY.fesetround(before)


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


SHAKEN_BY = 2.0**-40
"""The share of itself by which a number is shaken: thousands of last digits, so that nothing is equal by chance."""


class Float64Mode(TorchFunctionMode):
    """Within this context torch computes in float64.

    With a generator, `shaking`, what each function gives is larger or smaller by up to `SHAKEN_BY` of itself, each number by
    itself. So 1 − g shows how little of it is known where g is nearly 1.

    Attributes:
        computed_in: float32 if some function knows no float64 and was given float32, which it rounds to.
        coarsest: the coarsest floating type that the code itself uses.
        came_in: of each tensor of a coarser type that came from elsewhere, and is no parameter, its type, shape and sum. Where
            these differ between two questions, something was computed outside of this context. None: it is not watched.

    Without `sets_default` other threads are left alone. What torch makes of whole numbers is then rounded to float32 before
    it is widened: each number by itself, so alike whatever the shape.
    """

    def __init__(self, *, is_watching: bool = False, sets_default: bool = True, shaking: torch.Generator | None = None) -> None:
        super().__init__()
        self._sets_default, self._shaking = sets_default, shaking
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
            value = func(*args, **options)
            return _WIDER.get(value, value) if isinstance(value, torch.dtype) else value
        if func in _CASTS:
            return args[0].double()
        if func in _RANDOM:
            with rounded("nearest"):  # drawn numbers are what they are, however the rest is rounded
                return self._widened(func(*args, **{"dtype": self._default, **options}))
        # Tensors and lists as an index gather into new memory.
        indices = args[1] if name == "__getitem__" and isinstance(args[1], tuple) else args[1:2]
        is_slice = name == "__getitem__" and not any(isinstance(index, Tensor | list) for index in indices)
        if name in _VIEWS or is_slice:
            return func(*args, **options)
        writes = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        if writes and isinstance(args[0], Tensor) and args[0].dtype in _WIDER:
            # A tensor that outlives this call (a cache that is a buffer) keeps its type.
            into = args[0]

            def fitting(value: Any) -> Any:
                return value.to(into.dtype) if isinstance(value, Tensor) and value.is_floating_point() else value

            return func(into, *_map(args[1:], fitting), **_map(options, fitting))
        args, options = self._widened(args), self._widened(options)
        with ExitStack() as stack:
            for device in ("cpu", "cuda"):  # autocast would take float64 down to a half again
                if torch.is_autocast_enabled(device):
                    stack.enter_context(torch.autocast(device, enabled=False))
            try:
                return self._shaken(self._widened(func(*args, **options)))
            except Exception:
                # A few functions know no float64.
                try:
                    value = func(*_map(args, _narrowed), **_map(options, _narrowed))
                except Exception:
                    value = None
                if value is None:
                    raise
                self.computed_in = torch.float32
                return self._widened(value)

    def _shaken(self, value: Any) -> Any:
        """With each number of its tensors a little larger or smaller; never by nothing."""
        shaking = self._shaking
        if shaking is None:
            return value

        def shaken(value: Any) -> Any:
            if not isinstance(value, Tensor) or value.dtype != torch.float64 or is_parameter(value):
                return value
            share = torch.rand(value.shape, generator=shaking, dtype=torch.float64).to(value.device) - 0.5
            return value * (1 + SHAKEN_BY * (share + share.sign() / 2))

        return _map(value, shaken)

    def _widened(self, value: Any) -> Any:
        """With wider tensors and types, in plain tuples, lists and dictionaries too."""

        def widened(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return _WIDER.get(value, value) if isinstance(value, torch.dtype) else value
            if value.dtype not in _WIDER:
                return value
            if value.is_floating_point():
                self.coarsest = coarser(self.coarsest, value.dtype)
                if self.came_in is not None and not is_parameter(value) and value.unique().numel() > 1:
                    self.came_in.add((value.dtype, value.shape, float(value.double().sum())))
            return value.to(_WIDER[value.dtype])

        return _map(value, widened)


def coarser(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    """The one of two floating types with fewer digits."""
    return max(a, b, key=lambda dtype: torch.finfo(dtype).eps)


def _narrowed(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.float() if value.dtype == torch.float64 else value
    return torch.float32 if value is torch.float64 else value


def _map(value: Any, change: Callable[[Any], Any]) -> Any:
    """`change` of everything in plain tuples, lists and dictionaries."""
    if type(value) is tuple or type(value) is list:
        return type(value)(_map(item, change) for item in value)
    if type(value) is dict:
        return {key: _map(item, change) for key, item in value.items()}
    return change(value)
