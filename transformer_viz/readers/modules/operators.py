"""Attention of any module, seen and changed at the level of torch's operators.

However attention is written, its weights come from a softmax and are multiplied with the values. A softmax is followed through
views and element-wise operators (dropout, casts, re-zeroing) until it is an operand of a product and is summed over its keys.
That operand is what the weights were as applied; there it can also be changed.
"""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_viz.model.masks import HIDDEN
from transformer_viz.readers.modules.operator_roles import (
    CARRIES,
    MASKS,
    MOVES,
    PRODUCTS,
    ROLES,
    UNKNOWN,
    VIEWS,
    Role,
    aten,
    role_of,
)
from transformer_viz.readers.modules.running import Place, RunningModules
from transformer_viz.readers.modules.scores import UNTRACED, BeforeMask, MadeTensors
from transformer_viz.readers.modules.torch_attention import attention_steps

_FAITHFUL = 1e-3
"""The tolerance of rows of weights that come from no softmax: their distance from 1 and still count as weights."""


class NotChangeable(Exception):
    """Raised where a tap changes a mask and the score under it is not known."""


@dataclass(eq=False)
class Softmax:
    """One softmax of a pass, or what is as good as one, and the product in which it was applied. Keys are the last axis.

    Attributes:
        number: its place among those of the pass.
        module: the name of the module that computed it.
        place: where that stands among the layers.
        given: the first tensor that the module was given.
        scores: what went in, with −∞ or a mask's number where a key is hidden; None where it is not known.
        weights: what came out.
        before_mask: the scores before the mask, None where they could not be followed back.
        hidden: bool, what its mask hides, or None: nothing.
        is_traced: whether the scores were followed back to their product, so that each mask on the way is known.
        applied: the operand of the product in the shape of `weights`, NaN where a weight was not used; None without a product.
        n_free: rows that share the values of one product.
        value: the other operand.
        fault: why it cannot be shown as attention, whatever its shape.
    """

    number: int
    module: str
    place: Place
    given: Tensor | None
    scores: Tensor | None
    weights: Tensor
    dim: int
    before_mask: Tensor | None = None
    hidden: Tensor | None = None
    is_traced: bool = False
    applied: Tensor | None = None
    n_free: int = 0
    value: Tensor | None = None
    fault: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, which may be several axes, and keys."""
        return tuple(self.weights.shape)

    @property
    def masked(self) -> Tensor:
        """The cells that a mask hides, bool in the shape of the weights: their score is as low as a mask's number, and their
        weight is 0, unless everything in their row is hidden."""
        hidden = torch.zeros_like(self.weights, dtype=torch.bool) if self.hidden is None else self.hidden
        if self.scores is not None:
            hidden = hidden | (self.scores == -math.inf if self.is_traced else self.scores <= HIDDEN)
        seen = self.weights if self.applied is None else self.applied
        return hidden & ((seen == 0) | seen.isnan() | hidden.all(-1, keepdim=True))


class Changes(Protocol):
    """Changes the attention of a pass, softmax by softmax."""

    def weights(self, softmax: Softmax) -> Tensor:
        """The weights to apply, in the shape of `softmax.applied`; that tensor itself where nothing changes."""

    def heads(self, softmax: Softmax, heads: Tensor) -> Tensor:
        """The products to go on with, (rows …, width)."""


class _Step(NamedTuple):
    """One operator through which a softmax was followed: it took the tensor at `place` of its arguments."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    place: tuple[int, ...]
    output: int | None


@dataclass(eq=False)
class _Followed:
    """A tensor that has the weights of a softmax, and how they came there. The reference keeps its id from being used anew."""

    tensor: Tensor
    softmax: Softmax
    trail: tuple[_Step, ...] = ()
    is_log: bool = False
    moved: bool = False


@dataclass(eq=False)
class _Operand:
    """The weights as an operand of a product.

    Attributes:
        index: for each element its place in the flat weights, in the shape of the operand; None: the same order.
        rows: for each row of the product its number, (…, free row); None: the same order.
    """

    softmax: Softmax
    tensor: Tensor
    index: Tensor | None
    rows: Tensor | None


@dataclass
class Seen:
    """The softmaxes and products of a pass.

    Attributes:
        softmaxes: in their order.
        unseen: name of a module -> why attention in it cannot be seen.
    """

    softmaxes: list[Softmax] = field(default_factory=list)
    unseen: dict[str, str] = field(default_factory=dict)


class _Operators:
    """The treatment of each operator. In a class that is no mode: torch would wrap the method of one so that its first call
    imports the compiler, which takes seconds.

    Args:
        running: the modules that run.
        changes: what changes the attention, or None.
        is_searching: whether products of weights that come from no softmax are looked for, which takes time.

    Attributes:
        seen: what was seen so far.
        needs_autograd: whether something ran that is right above autograd alone; see `whole`.
    """

    def __init__(self, running: RunningModules, changes: Changes | None = None, *, is_searching: bool = True) -> None:
        super().__init__()
        self.seen = Seen()
        self.needs_autograd = False
        self._outer_keys: tuple[Any, Any] | None = None
        self._running, self._changes, self._is_searching = running, changes, is_searching
        self._followed: dict[int, _Followed] = {}
        self._scores = MadeTensors()
        self._exponents: dict[int, tuple[Tensor, Tensor | None]] = {}
        self._sums: dict[int, tuple[Tensor, Tensor, int]] = {}
        self._weighted: dict[int, tuple[Tensor, _Operand, int]] = {}

    def softmax_of(self, tensor: Tensor) -> Softmax | None:
        """The softmax whose weights a tensor has."""
        followed = self._followed.get(id(tensor))
        return None if followed is None else followed.softmax

    @contextmanager
    def whole(self) -> Generator[None]:
        """Lets torch hand over composed operators whole, for the time of the `with` block: six where there were ten.

        Parts are what autograd knows, so it is left out, and no gradient can be computed within. Inference mode does the same,
        but what the module keeps of it could never be trained with.
        """
        with torch._C._AutoDispatchBelowAutograd():
            self._outer_keys = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
            try:
                yield
            finally:
                self._outer_keys = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # A pass has hundreds of operators and most concern no attention, so what is done here for each is what the tap costs.
        kwargs = {} if kwargs is None else kwargs
        role, _ = ROLES.get(id(func), UNKNOWN)
        if role is None:
            role, _ = ROLES[id(func)] = role_of(func), func
        if torch.is_grad_enabled():
            self.needs_autograd = True
        treatment = self._TREATMENTS.get(role)
        if treatment is not None:
            return treatment(self, func, args, kwargs)
        followed = self._followed
        if followed:
            for i, given in enumerate(args):
                if id(given) in followed:
                    return self._follow(func, func.overloadpacket, args, kwargs, (i,), followed[id(given)])
                if type(given) is list:
                    for j, part in enumerate(given):
                        if id(part) in followed:
                            return self._follow(func, func.overloadpacket, args, kwargs, (i, j), followed[id(part)])
        if role == "other":
            return func(*args, **kwargs)
        if role == "opaque":
            self._cannot_see(f"it calls {func.overloadpacket._qualified_op_name.replace('::', '.')}, which gives no weights")
        scores = self._scores
        before = scores.copied(args[0]) if role == "in place" else None
        made = func(*args, **kwargs)
        first = made[0] if role == "maximum" and isinstance(made, tuple) else made
        if isinstance(first, Tensor):
            if role == "carrier":
                scores.carried(first, func, args, kwargs)
            elif role == "source" or role == "maximum":
                scores.begun(first)
            else:
                scores.changed(first, func, args, kwargs, before)
            if self._exponents or self._weighted:
                summed = self._sum_or_quotient(func.overloadpacket, args, kwargs, first)
                return made if summed is first else summed
        return made

    def _cannot_see(self, why: str) -> None:
        self.seen.unseen.setdefault(self._running.innermost, why)

    # ---- composed operators

    def _as_called(self) -> AbstractContextManager[Any]:
        """Dispatches as in the module's own code: within a mode torch leaves out the bases of views and conjugation, too."""
        if self._outer_keys is None or torch.is_inference_mode_enabled():
            return nullcontext()
        return torch._C._ForceDispatchKeyGuard(*self._outer_keys)

    def _taken_apart(self, func: Any, args: Any, kwargs: Any) -> Any:
        """An operator whose parts are seen one by one."""
        torch.autocast_increment_nesting()
        if torch.autocast_decrement_nesting() > 0:
            # Parts may have to be cast, and which is known outside of the mode alone.
            self.needs_autograd = True
        with self._as_called(), cast(TorchDispatchMode, self):
            return func.decompose(*args, **kwargs)

    def _is_told_of(self, given: Any) -> bool:
        """Tells whether a tensor is made of weights, or may become them."""
        key = id(given)
        if key in self._followed:
            return True
        is_by_hand = bool(self._exponents or self._weighted)
        return is_by_hand and (key in self._exponents or key in self._sums or key in self._weighted)

    def _linear(self, func: Any, args: Any, kwargs: Any) -> Any:
        if any(map(self._is_told_of, args)) or (self._is_searching and not is_parameter(args[1])):
            return self._taken_apart(func, args, kwargs)
        # How torch multiplies what is not contiguous depends on whether its other operand is known for a view of a parameter.
        with nullcontext() if args[0].is_contiguous() else self._as_called():
            made = func(*args, **kwargs)
        self._scores.begun(made)
        return made

    def _layout(self, func: Any, args: Any, kwargs: Any) -> Any:
        given = args[0]
        if self._is_told_of(given) or self._scores.is_changed(given):
            return self._taken_apart(func, args, kwargs)
        # Of a view it has to be known whether it is one of a parameter.
        with self._as_called() if given._base is not None or type(given) is nn.Parameter else nullcontext():
            made = func(*args, **kwargs)
        self._scores.laid_out(made, given)
        return made

    def _dropout(self, func: Any, args: Any, kwargs: Any) -> Any:
        given, _, is_training = args
        return self._taken_apart(func, args, kwargs) if is_training else given

    def _derivative(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A derivative that autograd was to carry along, which it does even where no gradients are recorded."""
        self.needs_autograd = True
        return func(*args, **kwargs)

    def _attention(self, func: Any, args: Any, kwargs: Any) -> Any:
        """torch's own attention, whose steps are known."""
        steps = None if any(map(self._is_told_of, args)) else attention_steps(*args, **kwargs)
        if steps is None:
            return self._taken_apart(func, args, kwargs)
        if self._is_searching:
            self._search(steps.query, steps.key)
        before = None
        if steps.added is None or steps.hidden is not None:
            before = BeforeMask(steps.product, steps.hidden, is_traced=True)
        else:
            self._scores.begun(steps.product)
            self._scores.changed(steps.scores, aten.add.Tensor, (steps.product, steps.added), {}, None)
        softmax = self._add(steps.scores, steps.weights, -1, before)
        operand = _Operand(softmax, steps.applied, None, None)
        made = self._apply(operand, steps.value, steps.scores.shape[-2], lambda weights: torch.matmul(weights, steps.value))
        return made if made.dtype == args[0].dtype else made.to(args[0].dtype)

    # ---- from scores to weights

    def _softmax(self, func: Any, args: Any, kwargs: Any) -> Any:
        scores, dim = args[0], args[1]
        made = func(*args, **kwargs)
        if scores.is_nested:
            self._cannot_see("it computes with nested tensors, whose weights have no common shape")
            return made
        if scores.dim():
            self._add(scores, made, dim, is_log=func.overloadpacket is aten._log_softmax)
        return made

    def _add(
        self,
        scores: Tensor | None,
        weights: Tensor,
        dim: int,
        before_mask: BeforeMask | None = None,
        *,
        is_log: bool = False,
        fault: str = "",
    ) -> Softmax:
        if before_mask is None:
            before_mask = UNTRACED if scores is None else self._scores.before_mask(scores)
        before, hidden, is_traced = before_mask
        dim %= weights.dim()
        turn = lambda tensor: tensor if tensor is None or dim == tensor.dim() - 1 else tensor.movedim(dim, -1)  # noqa: E731
        running = self._running
        softmax = Softmax(
            len(self.seen.softmaxes),
            running.innermost,
            running.place,
            running.first_input,
            turn(scores),
            turn(weights),
            dim,
            turn(before),
            None if hidden is None or scores is None else turn(hidden.expand(scores.shape)),
            is_traced,
            fault=fault,
        )
        self.seen.softmaxes.append(softmax)
        self._followed[id(weights)] = _Followed(weights, softmax, is_log=is_log)
        self._scores.clear()
        return softmax

    def _exponent(self, func: Any, args: Any, kwargs: Any) -> Any:
        followed = self._followed.get(id(args[0]))
        made = func(*args, **kwargs)
        if followed is not None and followed.is_log:
            self._followed[id(made)] = _Followed(made, followed.softmax, followed.trail, moved=followed.moved)
            if not followed.trail:
                followed.softmax.weights = made.movedim(followed.softmax.dim, -1)
        elif made.dim() > 1 and made.is_floating_point():
            if made.shape[-1] > 1 and bool(((made.sum(-1) - 1).abs() < _FAITHFUL).all()):
                self._add(args[0] if func.overloadpacket is aten.exp else made.log(), made, -1)
            else:
                self._exponents[id(made)] = made, args[0]
        return made

    def _sum_or_quotient(self, packet: Any, args: Any, kwargs: Any, made: Tensor) -> Tensor:
        """A softmax written as exponents, divided by their sum; and the sum over keys of values that were weighted, with what
        changes of it."""
        first = args[0]
        if packet is aten.sum:
            dims = args[1] if len(args) > 1 else kwargs.get("dim")
            if id(first) in self._exponents and dims and len(dims) == 1:
                self._sums[id(made)] = made, first, dims[0] % first.dim()
            if id(first) in self._weighted and dims:
                _, operand, axis = self._weighted[id(first)]
                if [dim % first.dim() for dim in dims] == [axis]:
                    self._applied(operand)
                    return self._with_scattered_heads(operand, made, _row_numbers(operand, first.shape).select(axis, 0))
        elif id(first) in self._exponents:
            divisor = self._sums.get(id(args[1])) if len(args) > 1 else None
            if packet in (aten.div, aten.div_) and divisor is not None and divisor[1] is first:
                scores = self._exponents[id(first)][1]
                self._add(made.log() if scores is None else scores, made, divisor[2])
            elif made.numel() == first.numel() and packet in CARRIES | MASKS | {aten.mul_}:
                self._exponents[id(made)] = made, None
        elif id(first) in self._sums and packet in (aten.add, aten.clamp, aten.clamp_min, *VIEWS):
            self._sums[id(made)] = made, *self._sums[id(first)][1:]
        return made

    # ---- from weights to their product

    def _follow(self, func: Any, packet: Any, args: Any, kwargs: Any, place: tuple[int, ...], followed: _Followed) -> Any:
        """An operator that is given weights, and is no product of matrices."""
        softmax, given = followed.softmax, followed.tensor
        is_single = packet is aten.sum and len(args) > 1 and args[1] and all(given.shape[dim] == 1 for dim in args[1])
        if packet in VIEWS or packet in MOVES or is_single:
            made = func(*args, **kwargs)
            outputs = list(made) if isinstance(made, list | tuple) else [made]
            for i, output in enumerate(outputs):
                step = _Step(func, args, kwargs, place, None if output is made else i)
                moved = followed.moved or packet not in VIEWS or output.numel() != given.numel()
                self._followed[id(output)] = _Followed(output, softmax, (*followed.trail, step), followed.is_log, moved)
            return made
        if packet in (aten.mul, aten.mul_) and not followed.is_log and isinstance(args[1], Tensor):
            other = args[1 - place[0]]
            shape = torch.broadcast_shapes(given.shape, other.shape)
            is_weighted = math.prod(shape) > given.numel() or (softmax.shape[-1] == 1 and other.dim() == len(shape))
            if is_weighted and id(other) not in self._followed and (operand := self._operand(followed, None)) is not None:
                return self._weight(func, args, kwargs, place[0], operand, other, shape)
        made = func(*args, **kwargs)
        for output in made if isinstance(made, list | tuple) else (made,):
            # Dropout, a cast, zeros where a mask is, a factor.
            if isinstance(output, Tensor) and output.is_floating_point() and output.shape == given.shape:
                self._followed[id(output)] = _Followed(output, softmax, followed.trail, followed.is_log, followed.moved)
        return made

    def _weight(
        self, func: Any, args: Any, kwargs: Any, place: int, operand: _Operand, other: Tensor, shape: tuple[int, ...]
    ) -> Tensor:
        """Values times weights, element by element, which are summed over the keys afterwards."""
        softmax, given = operand.softmax, operand.tensor
        axis = _key_axis(operand, softmax.shape[-1])
        n_new = len(shape) - given.dim()
        sizes = (1,) * (len(shape) - other.dim()) + tuple(other.shape)
        if axis is None or given.dim() == 0:
            return func(*args, **kwargs)
        free = [i for i in range(given.dim()) if i != axis and given.shape[i] > 1 and sizes[i + n_new] == 1]
        softmax.n_free = max(softmax.n_free, math.prod(given.shape[i] for i in free))
        softmax.value = other
        softmax.applied = _in_shape(operand)
        if (changed := self._changed(operand)) is not None:
            args = (*args[:place], changed, *args[place + 1 :])
        made = func(*args, **kwargs)
        if softmax.shape[-1] == 1:
            # One key: the product is the sum already, and torch makes this of other ways to write it.
            self._applied(operand)
            heads = self._with_scattered_heads(operand, made, _row_numbers(operand, made.shape))
            return heads if heads is made or func.overloadpacket is aten.mul else made.copy_(heads)
        softmax.applied = None
        self._weighted[id(made)] = made, operand, axis + n_new
        return made

    def _applied(self, operand: _Operand) -> None:
        softmax, applied = operand.softmax, _in_shape(operand)
        before = softmax.applied
        # Rows may be multiplied part by part.
        softmax.applied = applied if before is None else torch.where(applied.isnan(), before, applied)

    def _product(self, func: Any, args: Any, kwargs: Any) -> Any:
        first = PRODUCTS[func.overloadpacket]
        a, b = args[first], args[first + 1]
        is_followed = id(a) in self._followed or id(b) in self._followed or self._exponents
        for place, given, contracted in ((first, a, a.dim() - 1), (first + 1, b, max(0, b.dim() - 2))) if is_followed else ():
            followed = self._followed.get(id(given))
            if followed is None:
                if id(given) in self._exponents and given.shape[contracted] > 1:
                    self._cannot_see("its softmax is written as exponents that are divided by their sum after the product")
                continue
            if followed.is_log:
                continue
            operand = self._operand(followed, contracted)
            if operand is None:
                followed.softmax.fault = followed.softmax.fault or "its weights are summed over another axis than its softmax"
                continue
            n_free = math.prod(given.shape[i] for i in (-2, -1) if i % given.dim() != contracted)
            before, after, other = args[:place], args[place + 1 :], b if place == first else a
            multiplied = lambda weights: func(*before, weights, *after, **kwargs)  # noqa: B023, E731
            return self._apply(operand, other, n_free, multiplied, is_left=place == first)
        if self._is_searching:
            self._search(a, b)
        made = func(*args, **kwargs)
        if first == 1 and func.overloadpacket is aten.baddbmm:
            self._scores.changed(made, func, args, kwargs, None)
        else:
            self._scores.begun(made)
        return made

    def _search(self, a: Tensor, b: Tensor) -> None:
        """Notes operands of a product that are weights and come from no softmax."""
        if is_parameter(a) or is_parameter(b):
            return
        for given, contracted in ((a, a.dim() - 1), (b, max(0, b.dim() - 2))):
            if id(given) not in self._followed and _are_weights(given, contracted):
                softmax = self._add(None, given, contracted, fault="its weights come from no softmax that is known")
                self._applied(_Operand(softmax, given, None, None))

    def _apply(
        self, operand: _Operand, value: Tensor, n_free: int, multiplied: Callable[[Tensor], Tensor], *, is_left: bool = True
    ) -> Tensor:
        """The product of weights and values, with what changes of the weights and of the product."""
        softmax = operand.softmax
        self._applied(operand)
        softmax.n_free = max(softmax.n_free, n_free)
        softmax.value = value
        changed = self._changed(operand)
        made = multiplied(operand.tensor if changed is None else changed)
        return made if self._changes is None else self._with_heads(operand, made, is_left=is_left)

    def _operand(self, followed: _Followed, contracted: int | None) -> _Operand | None:
        """The weights as an operand that is summed over axis `contracted`; None where that is not the axis of the softmax."""
        softmax, given = followed.softmax, followed.tensor
        n_keys, n = softmax.shape[-1], softmax.weights.numel()
        is_last = softmax.dim == len(softmax.shape) - 1
        if contracted is not None and not followed.moved and is_last:
            return _Operand(softmax, given, None, None) if given.shape[contracted] == n_keys else None
        index = torch.arange(n, device=given.device).view(softmax.shape).movedim(-1, softmax.dim)
        for step in followed.trail:
            index = _replayed(step, index)
        if index.shape != given.shape:
            return None
        if contracted is None:
            return _Operand(softmax, given, index, None)
        by_row = index.movedim(contracted, -1)
        if by_row.shape[-1] != n_keys:
            # Some keys only: they are weights all the same, where each of them is a key of its own row.
            if not bool((by_row >= 0).all() and (by_row // n_keys == by_row[..., :1] // n_keys).all()):
                return None
            softmax.fault = softmax.fault or "its keys are multiplied part by part"
            return _Operand(softmax, given, index, None)
        if not bool((by_row % n_keys == torch.arange(n_keys, device=index.device)).all()) or not bool(
            (by_row // n_keys == by_row[..., :1] // n_keys).all()
        ):
            return None
        return _Operand(softmax, given, index, by_row[..., 0] // n_keys)

    def _changed(self, operand: _Operand) -> Tensor | None:
        """The operand with what changes of it; None where nothing does."""
        softmax, changes = operand.softmax, self._changes
        if changes is None or softmax.applied is None:
            return None
        changed = changes.weights(softmax)
        if changed is softmax.applied:
            return None
        changed = changed.to(operand.tensor.dtype)
        if operand.index is None:
            return changed.reshape(operand.tensor.shape)
        return changed.reshape(-1)[operand.index]

    def _with_heads(self, operand: _Operand, made: Tensor, *, is_left: bool) -> Tensor:
        softmax, changes = operand.softmax, self._changes
        assert changes is not None
        if made.dim() < 2:
            return made
        by_row = made if is_left else made.transpose(-2, -1)
        rows, width = softmax.shape[:-1], by_row.shape[-1]
        n_rows = math.prod(rows)
        if by_row.numel() != n_rows * width:
            return made
        flat = by_row.reshape(n_rows, width)
        order = None if operand.rows is None else operand.rows.reshape(-1)
        heads = flat if order is None else torch.empty_like(flat).index_copy_(0, order, flat)
        given = heads.view(*rows, width)
        changed = changes.heads(softmax, given)
        if changed is given:
            return made
        flat = changed.reshape(n_rows, width)
        by_row = (flat if order is None else flat[order]).reshape(by_row.shape)
        return by_row if is_left else by_row.transpose(-2, -1)

    def _with_scattered_heads(self, operand: _Operand, made: Tensor, rows: Tensor) -> Tensor:
        """The same of weighted values whose numbers lie in any order; `rows` has the row of each."""
        softmax, changes = operand.softmax, self._changes
        shape = softmax.shape[:-1]
        width, rest = divmod(made.numel(), math.prod(shape))
        if changes is None or rest:
            return made
        order = rows.reshape(-1).argsort(stable=True)
        every = torch.arange(math.prod(shape), device=rows.device).repeat_interleave(width)
        if not torch.equal(rows.reshape(-1)[order], every):
            return made
        given = made.reshape(-1)[order].view(*shape, width)
        changed = changes.heads(softmax, given)
        if changed is given:
            return made
        return torch.empty_like(changed.reshape(-1)).index_copy_(0, order, changed.reshape(-1)).view(made.shape)

    _TREATMENTS: ClassVar[dict[Role, Callable[..., Any]]] = {
        "product": _product,
        "softmax": _softmax,
        "exponent": _exponent,
        "linear": _linear,
        "attention": _attention,
        "dropout": _dropout,
        "layout": _layout,
        "composed": _taken_apart,
        "derivative": _derivative,
    }
    """Methods for operators of some roles; the others are told apart by what they are given."""


class OperatorTap(_Operators, TorchDispatchMode):
    """While it is entered, sees every softmax and product of this thread; arguments as of `_Operators`."""


def _in_shape(operand: _Operand) -> Tensor:
    """The operand in the shape of its softmax's weights; NaN where it does not have them."""
    softmax, given = operand.softmax, operand.tensor
    if operand.index is None:
        return given if given.shape == softmax.weights.shape else given.reshape(softmax.shape)
    flat = torch.full((softmax.weights.numel(),), math.nan, dtype=given.dtype, device=given.device)
    index = operand.index.reshape(-1)
    there = index >= 0
    flat[index[there]] = given.reshape(-1)[there]
    return flat.view(softmax.shape)


def _row_numbers(operand: _Operand, shape: Sequence[int]) -> Tensor:
    """The number of the row of each element of a product of this shape with the operand."""
    assert operand.index is not None
    return operand.index.expand(*shape) // operand.softmax.shape[-1]


def _key_axis(operand: _Operand, n_keys: int) -> int | None:
    """The axis of an operand along which the keys lie."""
    index = operand.index
    assert index is not None
    for axis in range(index.dim()):
        if index.shape[axis] != n_keys:
            continue
        along = index.movedim(axis, -1)
        if bool((along % n_keys == torch.arange(n_keys, device=index.device)).all()) and bool(
            (along // n_keys == along[..., :1] // n_keys).all()
        ):
            return axis
    return None


def _replayed(step: _Step, index: Tensor) -> Tensor:
    """Follows the places of the weights through an operator. An axis that it adds is at −1."""
    args = step.args
    if step.func.overloadpacket in (aten.cat, aten.stack):
        parts = [index if i == step.place[1] else torch.full_like(part, -1, dtype=torch.long) for i, part in enumerate(args[0])]
        return step.func(parts, *args[1:], **step.kwargs)
    filled = (*args[: step.place[0]], index, *args[step.place[0] + 1 :])
    if step.func.overloadpacket is aten.constant_pad_nd:
        return step.func(index, args[1], -1)
    if step.func.overloadpacket in (aten.tril, aten.triu):
        return index
    made = step.func(*filled, **step.kwargs)
    return made if step.output is None else made[step.output]


def is_parameter(tensor: Tensor) -> bool:
    """Tells whether a tensor is a parameter or a view of one; torch has no public name for what a view is of."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def _are_weights(given: Tensor, contracted: int) -> bool:
    """Tells whether the numbers of a matrix are weights: none negative, with rows that sum to 1, and not one for each row."""
    if not given.is_floating_point() or given.dim() < 2 or given.shape[contracted] < 2:
        return False
    sums = given.sum(contracted)
    if not bool(((sums - 1).abs() < _FAITHFUL).all()):
        return False
    return bool((given >= 0).all()) and not bool(((given == 0) | (given == 1)).all())


@contextmanager
def without_fused_kernels() -> Generator[None]:
    """Switches off, for the time of the `with` block, the kernels of torch that compute attention without its weights."""
    was_enabled = torch.backends.mha.get_fastpath_enabled()
    with ExitStack() as stack:
        stack.callback(torch.backends.mha.set_fastpath_enabled, was_enabled)
        torch.backends.mha.set_fastpath_enabled(False)
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        yield
