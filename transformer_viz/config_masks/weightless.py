"""Runs a model without its weights, and finds the mask of each attention on the way.

The weights are of the device "meta": they have shapes and no numbers. What follows from the ids and the configuration alone
(positions, padding, masks) is computed all the same, on the CPU. So a mask that reaches a softmax with its numbers is what the
model's own code makes of its configuration, and a mask without numbers depends on the weights.
"""

import math
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.weak import WeakIdKeyDictionary

from transformer_viz.errors import ModelError
from transformer_viz.model import masks

_META, _CPU = torch.device("meta"), torch.device("cpu")
_MOST_KNOWN = 2**22
"""Numbers of a tensor that is computed though nothing needs it; a larger one has no numbers."""
_SOFTMAXES = {"_softmax", "_safe_softmax"}
_ELEMENTWISE = {
    *("_to_copy", "clone", "alias", "detach", "mul", "div", "tanh", "maximum", "minimum", "clamp", "clamp_min", "neg", "rsub"),
    *("native_dropout", "dropout", "relu", "sigmoid", "nan_to_num", "contiguous", "pow", "exp", "log"),
}
_ARITHMETIC, _FILLING = {"add", "sub", "mul", "div", "neg"}, {"normal", "uniform", "zero", "fill", "copy"}
_OF_ONE_NUMBER, _WHOLE = {"zeros_like", "ones_like", "full_like"}, {torch.bool, torch.int, torch.long}
"""Operators and types for which a tensor without numbers gives its shape alone, as kinds of tokens that are all of text."""
_SHAPES = {
    "slice",
    "select",
    "permute",
    "transpose",
    "unsqueeze",
    "squeeze",
    "t",
    "split",
    "split_with_sizes",
    "unbind",
    "chunk",
}
_VIEWS = {"view", "_unsafe_view", "reshape", "_reshape_alias", "expand"}
_NEEDS_NUMBERS = {
    "_local_scalar_dense",
    "equal",
    "is_nonzero",
    "allclose",
    "unique_dim",
    "_unique2",
    "masked_select",
    "bincount",
}
_NO_NUMBERS = "its own code asks for numbers that only the weights give"


@dataclass(frozen=True)
class Lost:
    """Stands for a mask that is not known: why."""

    why: str


_OF_WEIGHTS = Lost("which keys it hides depends on the weights")


@dataclass(frozen=True)
class SeenSoftmax:
    """A softmax over scores.

    Attributes:
        modules: the names of the modules that run, outermost first.
        turn: the number of the innermost one's run among all runs of modules.
        shape: of the scores.
        masked: bool, and broadcast to that shape; None where nothing is.
    """

    modules: tuple[str, ...]
    turn: int
    shape: tuple[int, ...]
    masked: Tensor | Lost | None


def build(make: Callable[[], nn.Module]) -> nn.Module:
    """Builds a model without its weights, in eval mode.

    What it computes of its configuration as it is built, such as a table of positions or a triangle, has its numbers.
    """
    with torch.device("meta"), _Constants(), _Weightless(is_building=True):
        model = make().eval()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            module.register_parameter(name, nn.Parameter(parameter.detach().to(_META), requires_grad=False))
    return model


@torch.no_grad()
def softmaxes(model: nn.Module, **inputs: Any) -> list[SeenSoftmax]:
    """Runs a model on the device "meta" once, and gives its softmaxes over at least three axes in their order.

    Raises:
        ModelError: what the model does depends on its weights.
    """
    seen, running = list[SeenSoftmax](), list[tuple[str, int]]()

    def keep(scores: Tensor, masked: Tensor | Lost | None) -> None:
        if scores.dim() >= 3:
            modules, turns = zip(*running, strict=True)
            seen.append(SeenSoftmax(modules, turns[-1], tuple(scores.shape), masked))

    mode = _Weightless(keep)
    with _named(model, running), _remembering(model, mode, seen), _Constants(), mode:
        model(**inputs)
    return seen


@contextmanager
def _remembering(model: nn.Module, mode: "_Weightless", seen: list[SeenSoftmax]) -> Generator[None]:
    """Runs a module that makes one tensor without numbers of another, and has no attention, once for all that are like it.

    In a model of 48 layers norms and feed-forward layers are 48 times the same.
    """
    known: dict[Any, tuple[torch.Size, torch.dtype]] = {}

    def remembered(module: nn.Module, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        given = args[0] if len(args) == 1 and not kwargs else None
        if not isinstance(given, Tensor) or not mode.is_plain(given):
            return forward(*args, **kwargs)
        weights = tuple((name, one.shape) for name, one in module.named_parameters())
        key = (type(module), weights, given.shape, given.dtype)
        if (made := known.get(key)) is not None:
            return given.new_empty(made[0], dtype=made[1])
        n_seen = len(seen)
        output = forward(*args, **kwargs)
        if isinstance(output, Tensor) and mode.is_plain(output) and len(seen) == n_seen:
            known[key] = output.shape, output.dtype
        return output

    changed = list(model.modules())[1:]
    try:
        for module in changed:
            module.forward = partial(remembered, module, module.forward)
        yield
    finally:
        for module in changed:
            del module.__dict__["forward"]


@contextmanager
def _named(model: nn.Module, running: list[tuple[str, int]]) -> Generator[None]:
    """Keeps in `running` the names of the modules that run, and the number of each run, within."""
    handles, turns = [], count()
    try:
        for name, module in model.named_modules():
            handles += [
                module.register_forward_pre_hook(lambda _, __, name=name: running.append((name, next(turns)))),
                module.register_forward_hook(lambda _, __, ___: _leave(running), always_call=True),
            ]
        yield
    finally:
        for handle in handles:
            handle.remove()


def _leave(running: list[tuple[str, int]]) -> None:
    running.pop()


class _Constants(TorchFunctionMode):
    """Numbers that code writes out are known on the device "meta" too: torch makes them where no `_Weightless` sees it.

    A tensor without any stays there: by it transformers looks where it is, and fills no weights with numbers there.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        is_made = func in (torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor)
        if is_made and not isinstance(args[0], Tensor) and not (isinstance(args[0], list) and not args[0]):
            kwargs = {**kwargs, "device": _CPU}
        if func in (Tensor.tolist, Tensor.item, Tensor.numpy) and args[0].is_meta:
            raise ModelError(_NO_NUMBERS)
        return func(*args, **kwargs)


class _Weightless(TorchDispatchMode):
    """Computes what is known, and of all else the shapes."""

    def __init__(
        self, on_softmax: Callable[[Tensor, Tensor | Lost | None], None] = lambda *_: None, *, is_building: bool = False
    ) -> None:
        super().__init__()
        self._on_softmax, self._is_building = on_softmax, is_building
        self._masks = WeakIdKeyDictionary()
        self._spoilt: dict[int, Tensor] = {}
        """Tensors into which something unknown was written, kept by the address of their numbers."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = func._schema.name.removeprefix("aten::").removesuffix("_")
        tensors = list(_tensors((*args, *kwargs.values())))
        is_known = not any(map(self._is_unknown, tensors))
        if kwargs.get("device") is not None:
            is_weight = self._is_building and name.startswith(("empty", "rand", "normal"))
            kwargs["device"] = _CPU if is_known and not is_weight and not self._is_huge(name, args) else _META
        if is_known:
            return func(*args, **kwargs)
        if name in _OF_ONE_NUMBER and kwargs.get("dtype") in _WHOLE:
            return func(*args, **{**kwargs, "device": _CPU})
        if name in _NEEDS_NUMBERS:
            raise ModelError(_NO_NUMBERS)
        if name == "nonzero":  # of a mixture of experts: no expert is chosen, and no mask depends on which
            return torch.empty(0, args[0].dim(), dtype=torch.long, device=_META)
        written = [
            given
            for argument, given in zip(func._schema.arguments, args, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write and isinstance(given, Tensor)
        ]
        if func._schema.is_mutable and written and not written[0].is_meta:
            for tensor in written:
                self._spoilt[tensor.untyped_storage().data_ptr()] = tensor
            return written[0]
        if name in ("index", "index_put") and any(map(_is_choice, args[1])):
            # Which of two to take is known: by numbers, so that the shape is known too.
            places = [part for one in args[1] for part in (one.nonzero(as_tuple=True) if _is_choice(one) else [one])]
            args = (args[0], places, *args[2:])
        if name in _SOFTMAXES:
            self._on_softmax(args[0], self._masks.get(args[0]))
        masked = None if name in _SOFTMAXES else self._masked(func, name, args, kwargs, tensors)
        made = _made_alike(name, tensors, written)
        if made is None:
            if not all(tensor.is_meta for tensor in tensors):
                args, kwargs = tree_map(lambda one: one.to(_META) if isinstance(one, Tensor) else one, (args, kwargs))
            made = func(*args, **kwargs)
        outputs = [one for one in (made if isinstance(made, tuple | list) else [made]) if isinstance(one, Tensor)]
        of = masked if isinstance(masked, list) else [masked] * len(outputs)
        for output, mask in zip(outputs, of, strict=False):
            if mask is not None and not (isinstance(mask, Lost) and name != "cat" and not _is_alike(output, tensors)):
                self._masks[output] = mask
        return made

    def is_plain(self, tensor: Tensor) -> bool:
        """Tells whether it has no numbers and no mask, as a stream of vectors."""
        return tensor.is_meta and tensor.is_floating_point() and tensor not in self._masks

    def _is_unknown(self, tensor: Tensor) -> bool:
        return tensor.is_meta or (tensor.numel() > 0 and tensor.untyped_storage().data_ptr() in self._spoilt)

    def _is_huge(self, name: str, args: Any) -> bool:
        """Tells whether a new tensor has more numbers than are computed for nothing."""
        if args and isinstance(args[0], list | tuple) and all(isinstance(n, int) for n in args[0]):
            return math.prod(args[0]) > _MOST_KNOWN
        numbers = [abs(n) for n in args if isinstance(n, int | float)]
        return max(numbers, default=0) ** (2 if name == "eye" else 1) > _MOST_KNOWN and name in ("arange", "eye", "linspace")

    def _masked(self, func: Any, name: str, args: Any, kwargs: Any, tensors: list[Tensor]) -> Any:
        """Finds what is masked in the result of an operation: a tensor, Lost, None, or a list where it gives several."""
        known = [tensor for tensor in tensors if not self._is_unknown(tensor)]
        before = [self._masks[tensor] for tensor in tensors if tensor in self._masks]
        own = list[Tensor | Lost]()
        if name in ("add", "sub", "baddbmm"):
            sign = -1 if name == "sub" else 1
            own = [masks.hidden_by(sign * tensor) for tensor in known if tensor.is_floating_point() and tensor.dim() > 0]
        elif name == "masked_fill":
            value = args[2]
            if isinstance(value, Tensor) and self._is_unknown(value):
                own = [_unread(name)]
            elif float(value) <= masks.HIDDEN:
                own = [args[1] if not self._is_unknown(args[1]) else _OF_WEIGHTS]
        elif name == "where" and len(args) == 3:
            condition, *sides = args
            for side, is_here in zip(sides, (True, False), strict=True):
                if not isinstance(side, Tensor):
                    continue
                if self._is_unknown(side):
                    # A number that is put in the place of some scores may be any.
                    own += [_unread(name)] if side.numel() == 1 else []
                elif bool(masks.hidden_by(side).any()):
                    chosen = _OF_WEIGHTS if self._is_unknown(condition) else (condition == is_here) & masks.hidden_by(side)
                    own.append(chosen)
        elif name in _SHAPES | _VIEWS:
            return self._reshaped(func, name, args, kwargs) if before else None
        elif name not in _ELEMENTWISE:
            if name == "cat" and before:
                return self._joined(args)
            if name in ("bmm", "mm", "addmm", "embedding"):  # what these give is no longer scores
                return None
            hiding = [tensor for tensor in known if tensor.is_floating_point() and tensor.dim() > 2 and _hides(tensor)]
            if (before or hiding) and name.startswith("scatter"):  # to places that the weights choose
                return _OF_WEIGHTS
            return _OF_WEIGHTS if hiding else _unread(name) if before else None
        if not (found := [*before, *own]):
            return None
        if lost := next((one for one in found if isinstance(one, Lost)), None):
            return lost
        first, *others = (one for one in found if isinstance(one, Tensor))
        union = first
        for one in others:
            union = union | one
        return union if bool(union.any()) or before else None

    def _reshaped(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        mask, shape = self._masks[args[0]], args[0].shape
        if isinstance(mask, Lost):
            return mask
        mask = mask.expand(shape)
        if name in _VIEWS and name != "expand":
            mask = mask.reshape(args[1])
            return mask
        moved = func(mask, *args[1:], **kwargs)
        return list(moved) if isinstance(moved, tuple | list) else moved

    def _joined(self, args: Any) -> Any:
        """Joins the masks of tensors put one after the other, such as scores and a learned sink."""
        parts, mine = args[0], list[Tensor]()
        for part in parts:
            mask = self._masks.get(part)
            if isinstance(mask, Lost):
                return mask
            mine.append(torch.zeros(part.shape, dtype=torch.bool) if mask is None else mask.expand(part.shape))
        return torch.cat(mine, *args[1:])


def _made_alike(name: str, tensors: list[Tensor], written: list[Tensor]) -> Tensor | None:
    """Makes the result of an operation that is like one of its tensors; None of another one.

    torch tells it too, in Python and half a millisecond: most of the time that a model of 48 layers takes.
    """
    if written and name in _FILLING | _ARITHMETIC:
        return written[0]
    if name not in _ARITHMETIC:
        return None
    largest = max(tensors, key=Tensor.dim)
    if not (largest.is_meta and largest.is_floating_point() and all(one.dtype == largest.dtype for one in tensors)):
        return None
    shape = torch.broadcast_shapes(*(one.shape for one in tensors))
    return torch.empty_like(largest) if largest.shape == shape else None


def _tensors(given: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among arguments, and in lists of them."""
    for one in given:
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, list | tuple):
            yield from _tensors(one)


def _unread(name: str) -> Lost:
    return Lost(f"it passes through {name} before the softmax, which is not read here")


def _is_choice(index: Tensor | None) -> bool:
    return index is not None and index.dtype == torch.bool and not index.is_meta


def _hides(added: Tensor) -> bool:
    return bool(masks.hidden_by(added).any())


def _is_alike(output: Tensor, given: list[Tensor]) -> bool:
    """Tells whether a result may still be scores: its last two axes are those of something that it was made of."""
    return output.dim() > 2 and any(one.dim() > 2 and one.shape[-2:] == output.shape[-2:] for one in given)
