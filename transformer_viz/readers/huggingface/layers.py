"""Finds the layers, norms and output projections of a Hugging Face model by comparing numbers, not names.

A pass over three tokens records the input and the output of each module (`record_calls`). Then the residual stream of a layer
is computed again from the outputs of its modules, with a norm before or after an addition, and compared with the input of the
next module (`layers_of`). The output projection is the linear module whose input is the output of the heads. What the numbers
do not confirm is left out.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer_viz.model.attention_block import AttentionBlock, Norm
from transformer_viz.model.config import NormPlacement
from transformer_viz.readers.huggingface.attention import Call, observe_attention

_TOLERANCE = 1e-5
_LAYER = re.compile(r"^.*?\.\d+(?=\.|$)")
"""The name of a layer: that of a module within it up to the first number."""


class ModuleCall(NamedTuple):
    """One call of a module.

    Attributes:
        name: of the module in the model.
        module: the module.
        given: its first input; its output where it takes no tensor.
        gave: its output, or the first of several.
        attention: the call of attention that the module itself made, or None.
    """

    name: str
    module: nn.Module
    given: Tensor
    gave: Tensor
    attention: Call | None = None

    @property
    def n_parameters(self) -> int:
        """Trained numbers of its module."""
        return sum(parameter.numel() for parameter in self.module.parameters())


class Recording(NamedTuple):
    """The calls of one pass: of modules, in the order in which they returned, and of attention."""

    modules: list[ModuleCall]
    attentions: list[Call]


@contextmanager
def record_calls(model: nn.Module) -> Generator[Recording]:
    """Records every call of a module or of attention inside the `with` block; modules that return no tensor are left out."""
    recording, unfinished, handles = Recording([], []), dict[nn.Module, Call](), []

    def record_attention(call: Call) -> None:
        recording.attentions.append(call)
        unfinished[call.module] = call

    def recorder(name: str) -> Any:
        def record(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            given, gave, call = first_input(args, kwargs), first_output(output), unfinished.pop(module, None)
            if gave is not None:
                recording.modules.append(ModuleCall(name, module, gave if given is None else given, gave, call))

        return record

    try:
        handles += [module.register_forward_hook(recorder(name), with_kwargs=True) for name, module in model.named_modules()]
        with observe_attention(record_attention):
            yield recording
    finally:
        for handle in handles:
            handle.remove()


def first_input(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """The argument `hidden_states` of a call, else its first argument; None if that is no tensor."""
    first = kwargs.get("hidden_states", args[0] if args else None)
    return first if isinstance(first, Tensor) else None


def first_output(output: Any) -> Tensor | None:
    """The tensor that a module returned, or the first entry of a tuple; None if that is no tensor."""
    first = output[0] if isinstance(output, tuple) and output else output
    return first if isinstance(first, Tensor) else None


class Branch(NamedTuple):
    """One residual connection x + f(x): f is attention with its output projection, or a feed-forward layer.

    Attributes:
        calls: the modules of f, in order.
        before: the norm of x before f, or None.
        within: the norm of f(x) before the addition, or None.
        after: the norm of the sum, or None.
    """

    calls: tuple[ModuleCall, ...]
    before: ModuleCall | None
    within: ModuleCall | None
    after: ModuleCall | None

    @property
    def attention(self) -> Call | None:
        """The call of attention in it, or None."""
        return next((call.attention for call in self.calls if call.attention is not None), None)


@dataclass(frozen=True)
class ModelLayer:
    """One layer that contains attention.

    Attributes:
        whole: the call of the layer's module.
        inner: the calls of the modules inside it.
        branches: its residual connections in order, as many as the numbers confirm, from its input on.
        adds_up: whether they end with the layer's output.
    """

    whole: ModuleCall
    inner: tuple[ModuleCall, ...]
    branches: tuple[Branch, ...]
    adds_up: bool


def layers_of(calls: Sequence[ModuleCall]) -> list[ModelLayer]:
    """The layers in the order in which they ran. An attention whose module has no number in its name belongs to none."""
    names = {match[0] for call in calls if call.attention is not None and (match := _LAYER.match(call.name))}
    layers = []
    for start, end in pairwise([-1, *(place for place, call in enumerate(calls) if call.name in names)]):
        whole = calls[end]
        inner = tuple(call for call in calls[start + 1 : end] if call.name.startswith(f"{whole.name}."))
        branches, adds_up = _branches(_parts(inner), whole.given, whole.gave)
        layers.append(ModelLayer(whole, inner, tuple(branches), adds_up))
    return layers


def _parts(calls: Sequence[ModuleCall]) -> list[tuple[ModuleCall, ...]]:
    """The calls of a layer in groups: each norm alone, and the linear modules and attention between two norms together."""
    steps = []
    for place, call in enumerate(calls):
        if call.attention is not None:
            # The attention module of ALBERT includes the residual connection and the norm: these follow as steps of their own.
            inner = iter([other for other in calls[:place] if other.name.startswith(f"{call.name}.")])
            out = next((other for other in inner if _projects(other, call.attention)), None)
            norms = [other for other in inner if is_norm(other.module)]
            steps += [call._replace(gave=out.gave), *norms] if out is not None and norms else [call]
        elif (is_norm(call.module) or is_linear(call.module)) and not any(
            other.attention is not None and call.name.startswith(f"{other.name}.") for other in calls
        ):
            steps.append(call)
    # Two norms may follow each other, of which one is of what was added and one of what is read next.
    groups = groupby(enumerate(steps, 1), lambda step: is_norm(step[1].module) and step[0])
    return [tuple(call for _, call in group) for _, group in groups]


def _branches(parts: Sequence[tuple[ModuleCall, ...]], stream: Tensor, end: Tensor) -> tuple[list[Branch], bool]:
    """The residual connections that turn `stream`, a layer's input, into `end`, its output, and whether they do.

    Where a norm follows, it may be one of what is added or of the sum: each way whose numbers fit is tried.
    """
    if not parts:
        return [], is_same(stream, end)
    norms = [part[0] if is_norm(part[0].module) else None for part in parts]
    first = int(norms[0] is not None)
    before = norms[0]
    if len(parts) == first or norms[first] is not None or (before is not None and not is_same(before.given, stream)):
        return [], False
    part, rest = parts[first], parts[first + 1 :]
    n_attentions = sum(call.attention is not None for call in part)
    if n_attentions > 1 or not is_same(part[0].given, stream if before is None else before.gave):
        return [], False
    if part[-1].gave.numel() != stream.numel():
        return [], False
    added = part[-1].gave.reshape(stream.shape)
    ways = [(rest, stream + added, Branch(part, before, None, None))]
    if rest and (norm := norms[first + 1]) is not None:
        if is_same(norm.given, added):
            ways.append((rest[1:], stream + norm.gave.reshape(stream.shape), Branch(part, before, norm, None)))
        if is_same(norm.given, stream + added):
            # Where the layer does not add up, a norm behind is one of the sum unless there was one before.
            ways.insert(len(ways) if before else 0, (rest[1:], norm.gave, Branch(part, before, None, norm)))
    longest: list[Branch] = []
    for left, then, branch in ways:
        others, adds_up = _branches(left, then, end)
        if adds_up:
            return [branch, *others], True
        if len(others) + 1 > len(longest) and is_same(left[0][0].given if left else end, then):
            longest = [branch, *others]
    return longest, False


def is_same(a: Tensor, b: Tensor) -> bool:
    """Tells whether two tensors have the same numbers but for rounding; their axes before the last may be split differently."""
    if a.numel() != b.numel() or a.shape[-1] != b.shape[-1]:
        return False
    return torch.allclose(a.reshape(-1), b.reshape(-1), rtol=_TOLERANCE, atol=_TOLERANCE * float(b.abs().max()))


def is_linear(module: nn.Module) -> bool:
    """Tells whether a module multiplies by a matrix, as `nn.Linear` and transformers' `Conv1D` do."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() == 2 and not isinstance(module, nn.Embedding)


def is_norm(module: nn.Module) -> bool:
    """Tells whether a module is a norm: by its name, or with vectors of parameters only."""
    parameters = [*module.parameters()]
    is_named = "Norm" in type(module).__name__
    return next(module.children(), None) is None and (is_named or (bool(parameters) and all(p.dim() == 1 for p in parameters)))


def _projects(call: ModuleCall, attention: Call) -> bool:
    """Tells whether a module is the output projection of an attention."""
    return is_linear(call.module) and is_same(call.given, attention.output.flatten(2))


@dataclass(frozen=True)
class AttentionModules:
    """The modules around one attention, which hooks are registered on. None = not found.

    Attributes:
        attention_block: the numbers of all of these, as far as they are known.
        attention: the module that contains the query projection; its input is what queries are made of.
        out: the output projection.
        norm: the norm before or after the attention.
        layer: the module of the whole layer.
    """

    attention_block: AttentionBlock
    attention: nn.Module | None = None
    out: nn.Module | None = None
    norm: nn.Module | None = None
    layer: nn.Module | None = None


def modules_around(recording: Recording, layers: Sequence[ModelLayer], *, has_scores: bool) -> Iterator[AttentionModules]:
    """The modules around each recorded call of attention, in order.

    `has_scores`: whether the model's scores are those that `attention.scores_of` computes; else scale and cap stay unknown.
    """
    places = {id(call.attention): (layer, call) for layer in layers for call in layer.inner if call.attention is not None}
    for attention in recording.attentions:
        scale = attention.options.get("scaling")
        block = AttentionBlock(
            scale=(attention.query.shape[-1] ** -0.5 if scale is None else float(scale)) if has_scores else None,
            softcap=attention.options.get("softcap") if has_scores else None,
        )
        if id(attention) not in places:
            yield AttentionModules(block)
            continue
        layer, call = places[id(attention)]
        around = AttentionModules(block, layer=layer.whole.module)
        if any(is_linear(other.module) and other.given is call.given for other in layer.inner):
            around = replace(around, attention=call.module)
            out = next((other for other in layer.inner if _projects(other, attention)), None)
            if out is not None and (matrix := _matrix(out, attention)) is not None:
                block = replace(block, out=matrix, out_bias=getattr(out.module, "bias", None))
                branch = next((branch for branch in layer.branches if branch.attention is attention), None)
                norm = None
                if branch is not None and is_same(branch.calls[-1].gave, out.gave):
                    norms: dict[NormPlacement, ModuleCall | None]
                    norms = {"pre": branch.before, "residual-post": branch.within, "post": branch.after}
                    there = [(placement, call) for placement, call in norms.items() if call is not None]
                    if len(there) == 1 and (kind := _norm(there[0][1])) is not None:
                        norm, block = there[0][1].module, replace(block, placement=there[0][0], norm=kind)
                around = replace(around, out=out.module, norm=norm, attention_block=block)
        yield around


def _matrix(out: ModuleCall, attention: Call) -> Tensor | None:
    """W_O as (head, d_v, d_model); None where neither the module's weight nor its transpose gives the module's output."""
    weight, bias = out.module.weight, getattr(out.module, "bias", None)
    assert isinstance(weight, Tensor)
    for matrix in (weight.T, weight):
        if matrix.shape != (out.given.shape[-1], out.gave.shape[-1]):
            continue
        made = out.given @ matrix
        if is_same(made if bias is None else made + bias, out.gave):
            return matrix.unflatten(0, (attention.weights.shape[1], -1))
    return None


def _norm(call: ModuleCall) -> Norm | None:
    """The LayerNorm or RMSNorm that gives the module's output; None for another kind of norm."""
    weight: Any = getattr(call.module, "weight", None)
    bias: Any = getattr(call.module, "bias", None)
    epsilons = (getattr(call.module, name, None) for name in ("eps", "variance_epsilon"))
    epsilon = next((float(value) for value in epsilons if value), None)
    if epsilon is None:
        return None
    x = call.given
    centred = x - x.mean(-1, keepdim=True)
    # Gemma keeps by how much the weight is more than 1.
    more: Any = None if weight is None else 1 + weight
    for norm in (Norm("layer", weight, bias, epsilon), Norm("rms", weight, bias, epsilon), Norm("rms", more, bias, epsilon)):
        u = centred if norm.kind == "layer" else x
        made = u * torch.rsqrt(u.pow(2).mean(-1, keepdim=True) + norm.epsilon)
        made = made if norm.weight is None else made * norm.weight
        made = made if norm.bias is None else made + norm.bias
        if is_same(made, call.gave):
            return norm
    return None
