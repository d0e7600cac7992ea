"""What stands around the attentions of a Hugging Face model: found by what a pass over three tokens computes, not by names.

The output projection is the linear module whose input is what the heads give, the norm the module whose input or output is the
vector that the placement says, and a residual connection is there where the sum is what something reads next. What is not
found so is not told.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.errors import ModelError
from transformer_viz.model.config import NormPlacement
from transformer_viz.model.surroundings import Norm, Surroundings
from transformer_viz.model.tap import Site, TapName, looking, reads
from transformer_viz.readers.huggingface import attention
from transformer_viz.readers.huggingface.attention import Call, Pass, Place
from transformer_viz.readers.huggingface.watching import Event, Seen, given_by, given_to

NAMES: tuple[TapName, ...] = ("entered", "residual_before", "residual_after", "added", "state")
"""Of what a tap may see here; hooks stand in the model for as long as a pass whose tap reads one of them."""
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Around:
    """Of one attention.

    Attributes:
        attention: the module that is given what enters; None where that is not what queries are made of.
        out: the output projection, or None.
        norm: the norm around the attention, or None.
        layer: the module of the whole layer.
        told: what is told of it.
    """

    attention: nn.Module | None
    out: nn.Module | None
    norm: nn.Module | None
    layer: nn.Module | None
    told: Surroundings


def around(seen: Seen, layers: Sequence[nn.Module | None], *, has_scores: bool) -> list[Around]:
    """Of each call of attention; `layers` are the modules that they stand in."""
    places = [place for place, each in enumerate(seen) if isinstance(each, Call)]
    found = []
    for before, place, end, layer in zip([0, *places], places, [*places, len(seen)][1:], layers, strict=False):
        call = seen[place]
        assert isinstance(call, Call)
        made = [_of_vectors(part) for part in (seen[before:place], seen[place:end])]
        found.append(_around(call, *made, layer, has_scores=has_scores))
    return found


def _of_vectors(seen: Seen) -> list[Event]:
    """Without the calls of attention, and modules that are given ids."""
    return [each for each in seen if isinstance(each, Event) and each.given.is_floating_point()]


def _around(
    call: Call, before: Sequence[Event], after: Sequence[Event], layer: nn.Module | None, *, has_scores: bool
) -> Around:
    """From what was computed between the call of attention before and this one, and between this one and the next."""
    own = next((event for event in after if event.module is call.module), None)
    entered = None if own is None else own.given
    is_made_of_it = any(_is_linear(event.module) and event.given is entered for event in before)
    scale = call.options.get("scaling")
    told = Surroundings(
        scale=(call.query.shape[-1] ** -0.5 if scale is None else float(scale)) if has_scores else None,
        softcap=call.options.get("softcap") if has_scores else None,
    )
    given = call.output.flatten(2)
    out = next((each for each in after if _is_linear(each.module) and _is(each.given, given)), None)
    matrix = None if out is None else _matrix(out, call)
    if out is None or matrix is None or entered is None or not is_made_of_it:
        return Around(call.module if is_made_of_it else None, None, None, layer, told)
    told = replace(told, out=matrix, out_bias=getattr(out.module, "bias", None))
    norm, told = _norm_around(entered, out.gave, before, after, told)
    return Around(call.module, out.module, norm, layer, told)


def _norm_around(
    entered: Tensor, added: Tensor, before: Sequence[Event], after: Sequence[Event], told: Surroundings
) -> tuple[nn.Module | None, Surroundings]:
    """Where the norm stands, if one placement and no other is what was computed."""
    first = next((each for each in reversed(before) if _is_norm(each.module) and _is(each.gave, entered)), None)
    on_added = next((each for each in after if _is_norm(each.module) and _is(each.given, added)), None)
    on_sum = next((each for each in after if _is_norm(each.module) and _is(each.given, entered + added)), None)
    found: list[tuple[Event, NormPlacement]] = []
    if first is not None and _is_read(first.given + added, after):
        found.append((first, "pre"))
    if on_sum is not None:
        found.append((on_sum, "post"))
    if on_added is not None and _is_read(entered + on_added.gave, after):
        found.append((on_added, "residual-post"))
    return _told(*found[0], told) if len(found) == 1 else (None, told)


def _told(event: Event, placement: NormPlacement, told: Surroundings) -> tuple[nn.Module | None, Surroundings]:
    norm = _norm(event)
    return (None, told) if norm is None else (event.module, replace(told, placement=placement, norm=norm))


def _norm(event: Event) -> Norm | None:
    """Which of the known norms this is, by what it computed."""
    weight: Any = getattr(event.module, "weight", None)
    bias: Any = getattr(event.module, "bias", None)
    epsilon = next((float(each) for name in ("eps", "variance_epsilon") if (each := getattr(event.module, name, None))), None)
    if epsilon is None:
        return None
    x = event.given
    centred = x - x.mean(-1, keepdim=True)
    # Gemma keeps by how much the weight is more than 1.
    more: Any = None if weight is None else 1 + weight
    for norm in (Norm("layer", weight, bias, epsilon), Norm("rms", weight, bias, epsilon), Norm("rms", more, bias, epsilon)):
        u = centred if norm.kind == "layer" else x
        made = u * torch.rsqrt(u.pow(2).mean(-1, keepdim=True) + norm.epsilon)
        made = made if norm.weight is None else made * norm.weight
        made = made if norm.bias is None else made + norm.bias
        if _is(made, event.gave):
            return norm
    return None


def _matrix(out: Event, call: Call) -> Tensor | None:
    """W_O by heads, (head, d_v, d_model), whichever way the module keeps it."""
    weight, bias = out.module.weight, getattr(out.module, "bias", None)
    assert isinstance(weight, Tensor)
    for matrix in (weight.T, weight):
        if matrix.shape != (out.given.shape[-1], out.gave.shape[-1]):
            continue
        made = out.given @ matrix
        if _is(made if bias is None else made + bias, out.gave):
            return matrix.unflatten(0, (call.weights.shape[1], -1))
    return None


def _is_read(total: Tensor, after: Sequence[Event]) -> bool:
    """Whether something reads or gives it later, perhaps with its rows in one row of rows."""
    ends = (end for event in after for end in (event.given, event.gave) if end.numel() == total.numel())
    return any(_is(end.reshape(total.shape), total) for end in ends)


def _is(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE)


def _is_linear(module: nn.Module) -> bool:
    """With one matrix, and perhaps a bias: also the Conv1D of transformers."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() == 2 and not isinstance(module, nn.Embedding)


def _is_norm(module: nn.Module) -> bool:
    parameters = list(module.parameters())
    is_leaf = next(module.children(), None) is None
    return is_leaf and hasattr(module, "forward") and bool(parameters) and all(each.dim() == 1 for each in parameters)


def _hidden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    found = given_to(args, kwargs)
    return found if found is not None and found.is_floating_point() else None


# ---- in a pass


@contextmanager
def handed(now: Pass | None, found: Mapping[Place, Around]) -> Generator[None]:
    """The pass hands its tap what surrounds attention, where the tap reads that."""
    if now is None or not any(reads(now.tap, name) for name in NAMES):
        yield
        return
    hooks = _Hooks(now, found)
    handles = hooks.registered()
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class _Hooks:
    """Of one pass, on modules that other threads may be using: what is not this pass is let by."""

    def __init__(self, now: Pass, found: Mapping[Place, Around]) -> None:
        self.now, self.around = now, {place: found[place] for place in now.places}
        self.layers = sorted({layer for _, layer in now.places})
        self.n_layers = 0
        self.norm_input: Tensor | None = None
        self.before: Tensor | None = None
        self.is_open = False
        """Whether the last call's way out is still to come."""

    def registered(self) -> list[Any]:
        each = self.around.values()
        handles = [
            *(m.register_forward_pre_hook(self._mine(self.enter), with_kwargs=True) for m in _once(a.attention for a in each)),
            *(m.register_forward_hook(self._mine(self.leave)) for m in _once(a.out for a in each)),
            *(m.register_forward_pre_hook(self._mine(self.norm)) for m in _once(a.norm for a in each)),
            *(m.register_forward_hook(self._mine(self.normed)) for m in _once(a.norm for a in each)),
        ]
        layers = _once(a.layer for a in each)
        handles += [m.register_forward_pre_hook(self._mine(self.begin), with_kwargs=True) for m in layers]
        return handles + [m.register_forward_hook(self._mine(self.end)) for m in layers]

    def _mine(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: hook(*given) if attention.is_now(self.now) else None

    def begin(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The first layer is given what the embeddings are."""
        if self.n_layers:
            return None
        return self._changed(args, kwargs, lambda x: self._look("state", x, self._stack(-1)))

    def end(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        """A layer is done."""
        state = given_by(output)
        if state is None or self.n_layers == len(self.layers):
            return None
        site = self._stack(self.layers[self.n_layers])
        self.n_layers += 1
        seen = self._look("state", state, site)
        return None if seen is state else (seen, *output[1:]) if isinstance(output, tuple) else seen

    def norm(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """What may turn out to be the residual stream before the norm that stands first."""
        self.norm_input = _hidden(args, {})

    def enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The attention is given what enters."""
        site = self._site(self.now.n_seen)
        placement = self.around[site.kind, site.layer].told.placement
        self.before = None if placement is None else self.norm_input if placement == "pre" else _hidden(args, kwargs)
        self._show("residual_before", self.before, site)
        self.is_open = True
        return self._changed(args, kwargs, lambda x: self._look("entered", x, site))

    def leave(self, module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Any:
        """The output projection is done."""
        site = self._site(self.now.n_seen - 1)
        here = self.around[site.kind, site.layer]
        if here.out is not module or not self.is_open:
            return None
        added = self._look("added", output, site)
        if here.told.placement == "pre" and self.before is not None:
            self._show("residual_after", self.before + added, site)
        self.is_open = here.told.placement in ("post", "residual-post")
        return None if added is output else added

    def normed(self, module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        """The norm that stands after the attention is done."""
        if not self.is_open or not self.now.n_seen:
            return
        site = self._site(self.now.n_seen - 1)
        here = self.around[site.kind, site.layer]
        if here.norm is not module or here.told.placement == "pre" or self.before is None:
            return
        self.is_open = False
        self._show("residual_after", output if here.told.placement == "post" else self.before + output, site)

    def _site(self, number: int) -> Site:
        kind, layer = self.now.places[number]
        return Site(kind, layer, self.now.first_query)

    def _stack(self, layer: int) -> Site:
        return Site("encoder" if self.now.places[0][0] == "encoder" else "decoder", layer, self.now.first_query)

    def _look(self, name: TapName, value: Tensor, site: Site) -> Tensor:
        return looking(self.now.tap, *site)(name, value)

    def _show(self, name: TapName, value: Tensor | None, site: Site) -> None:
        """What stands on the way of no module, and can be seen and not changed."""
        if value is not None and self._look(name, value, site) is not value:
            raise ModelError(f"{name} cannot be changed in a model of Hugging Face; change state, entered or added instead")

    def _changed(self, args: tuple[Any, ...], kwargs: dict[str, Any], look: Callable[[Tensor], Tensor]) -> Any:
        x = _hidden(args, kwargs)
        if x is None or (seen := look(x)) is x:
            return None
        return (args, {**kwargs, "hidden_states": seen}) if "hidden_states" in kwargs else ((seen, *args[1:]), kwargs)


def _once(modules: Any) -> list[nn.Module]:
    """Each of them once."""
    return list({id(module): module for module in modules if module is not None}.values())
