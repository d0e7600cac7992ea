"""The drawing of a Hugging Face model: its layers as blocks, as far as they add up.

A model of which a layer does not add up is drawn with its attention alone.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.model.architecture import (
    LOOKS,
    TITLES,
    Architecture,
    Block,
    Role,
    Side,
    Stack,
    Sublayer,
    architecture_of_sizes,
    with_parameters,
)
from transformer_viz.model.sizes import Sizes
from transformer_viz.numbers_in_words import count_words
from transformer_viz.readers.huggingface.attention import Place
from transformer_viz.readers.huggingface.layers import Branch, ModelLayer, ModuleCall, is_linear, is_norm, is_same

_POSITIONS = re.compile("pos|wpe", re.IGNORECASE)
_NORMS = {
    "before": "A copy of the stream, before it is read:",
    "within": "What is added, before the addition:",
    "after": "The stream, after the addition:",
}


ObservedStack = tuple[Sequence[ModuleCall], Sequence[ModelLayer], Sequence[Place]]
"""The calls of one pass through a stack, its layers, and kind and layer of its attentions in order."""


def architecture_of(stacks: Mapping[Side, ObservedStack], sizes: Sizes, output: Any) -> Architecture:
    """Describes how a model of these sizes is built; `output` is the module that makes logits, or None."""
    drawn = []
    for side, (calls, layers, places) in stacks.items():
        numbers, blocks, left = [], [], iter(places)
        if sum(branch.attention is not None for layer in layers for branch in layer.branches) != len(places):
            return architecture_of_sizes(sizes)
        for layer in layers:
            own = [next(left) if branch.attention is not None else None for branch in layer.branches]
            number = next((place[1] for place in own if place is not None), None)
            if number is None or not layer.adds_up:
                return architecture_of_sizes(sizes)
            numbers.append(number)
            pairs = zip(layer.branches, own, strict=True)
            blocks.append(tuple(_sublayer(branch, side, number, place, sizes) for branch, place in pairs))
        first, last = (next(i for i, call in enumerate(calls) if call is layers[place].whole) for place in (0, -1))
        before = [call for call in calls[:first] if not call.name.startswith(f"{calls[first].name}.")]
        begin, end = _begin(side, before, calls[first].given), _end(side, calls[last + 1 :], output)
        drawn.append(Stack(side, tuple(begin), tuple(numbers), tuple(blocks), tuple(end)))
    return Architecture(tuple(drawn))


def _sublayer(branch: Branch, side: Side, number: int, place: Place | None, sizes: Sizes) -> Sublayer:
    """`place` is that of the attention; None for a feed-forward layer."""
    calls, width = branch.calls, branch.calls[0].given.shape[-1]
    norms: dict[str, ModuleCall] = {slot: norm for slot in _NORMS if (norm := getattr(branch, slot)) is not None}
    # A norm that is drawn by itself may be within the module.
    apart = sum(call.n_parameters for call in norms.values() if call.name.startswith(f"{calls[0].name}."))
    n_parameters = sum(call.n_parameters for call in calls) - apart
    if place is None:
        name, role, title = "feed_forward", "feed-forward", "Feed-forward"
        inner = max(call.gave.shape[-1] for call in calls)
        gate = ", with a gate," if len(calls) > 2 else ""
        words = f"Each vector by itself goes from d_model {width} to d_ff {inner}{gate} and back"
    else:
        name, role, title = place[0], "attention", TITLES[place[0]]
        call = branch.attention
        assert call is not None
        n_heads, n_shared = call.weights.shape[1], call.weights.shape[1] // call.key.shape[1]
        window = sizes.windows.get(place[0], {}).get(place[1])
        far = f", {window:,} positions far" if window else ""
        shared = f", {n_shared} heads to a key and value" if n_shared > 1 else ""
        words = (
            f"{LOOKS[place[0]]}{far}: {count_words(n_heads, 'head')} × d_k {call.query.shape[-1]}{shared}, from d_model {width}"
        )
    at = f"{side}.{number}.{name}"
    kind, sentence = None if place is None else place[0], f"{words}{with_parameters(n_parameters)}."
    block = Block(role, title, sentence, at, calls[0].name, n_parameters, kind, number)
    drawn: dict[str, Any] = {slot: _norm(call, "Norm", _NORMS[slot], f"{at}.{slot}", number) for slot, call in norms.items()}
    return Sublayer(block, **drawn)


def _begin(side: Side, calls: Sequence[ModuleCall], stream: Tensor) -> Iterator[Block]:
    """From tokens to what the first layer is given."""
    steps = [call for call in calls if _is_table(call.module) or is_norm(call.module) or is_linear(call.module)]
    tables = [call for call in steps if _is_table(call.module)]
    after = next((call.given for call in steps if not _is_table(call.module)), stream)
    # Rows as they stand in the table: some modules scale what they look up.
    rows = [_weight(call)[call.given] for call in tables[:1] if not call.given.is_floating_point()]
    added = [*rows, *(call.gave for call in tables[1:])]
    scale = None
    if added and all(vectors.shape[-1] == after.shape[-1] for vectors in added):
        others = sum(added[1:], torch.zeros_like(added[0]))
        scales = (1.0, math.sqrt(after.shape[-1]))
        scale = next((scale for scale in scales if is_same(added[0] * scale + others, after)), None)
    for number, call in enumerate(steps):
        place = f"{side}.begin.{number}"
        if is_norm(call.module):
            yield _norm(call, "Embedding norm", "The embeddings:", place)
        elif is_linear(call.module):
            yield _linear(call, place)
        elif call is tables[0]:
            size, width = _weight(call).shape
            times = {None: "; what else is added to it is not seen", 1.0: ""}.get(scale, f", times √{width}")
            title = {None: "Embedding + …", 1.0: "Embedding"}.get(scale, "Embedding × √d")
            words = f"Each token becomes a vector of d_model {width}, its row of a table of {size:,} tokens{times}{{}}."
            yield _block(call, "embedding", title, words, place)
        else:
            is_position = _POSITIONS.search(call.name)
            what = "Where a token stands" if is_position else "Which of two texts a token is of"
            name = "positions" if is_position else "segments"
            does = "has a vector too" if scale is None else "is added to its vector"
            words = f"{what} {does}, from a table of {_weight(call).shape[0]:,}{{}}."
            yield _block(call, "positions", name if scale is None else f"+ {name}", words, place)


def _end(side: Side, calls: Sequence[ModuleCall], output: Any) -> Iterator[Block]:
    """From what the last layer gives to logits, or to what a decoder reads of its encoder."""
    for number, call in enumerate(call for call in calls if is_norm(call.module) or is_linear(call.module)):
        place = f"{side}.end.{number}"
        if call.module is output:
            words = (
                f"The vector of d_model {call.given.shape[-1]} becomes a logit for each of {call.gave.shape[-1]:,} tokens{{}}."
            )
            yield _block(call, "output", "Output projection", words, place)
        elif is_norm(call.module) and number == 0:
            yield _norm(call, "Final norm", f"What leaves the {side}'s last layer:", place)
        elif is_norm(call.module):
            yield _norm(call, "Norm", "What was made of it:", place)
        else:
            yield _linear(call, place)


def _norm(call: ModuleCall, title: str, words: str, place: str, layer: int | None = None) -> Block:
    learned = "is normalized and scaled by learned numbers" if call.n_parameters else "is normalized"
    return _block(call, "norm", title, f"{words} each vector {learned}{{}}.", place, layer)


def _linear(call: ModuleCall, place: str) -> Block:
    words = f"Each vector by itself goes from {call.given.shape[-1]} numbers to {call.gave.shape[-1]}{{}}."
    return _block(call, "feed-forward", "Linear", words, place)


def _block(call: ModuleCall, role: Role, title: str, sentence: str, place: str, layer: int | None = None) -> Block:
    """`sentence` has a place for the number of parameters."""
    sentence = sentence.format(with_parameters(call.n_parameters))
    return Block(role, title, sentence, place, call.name, call.n_parameters, layer=layer)


def _is_table(module: nn.Module) -> bool:
    return isinstance(module, nn.Embedding)


def _weight(call: ModuleCall) -> Tensor:
    assert isinstance(call.module.weight, Tensor)
    return call.module.weight
