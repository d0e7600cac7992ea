"""How a Hugging Face model is built, for its drawing: found by what a pass over three tokens computes.

A norm and a residual connection are where the numbers say so: what a layer gives is computed again from what its parts gave. A
model of which that is not so in every layer is drawn with its attention alone.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer_viz.model.architecture import (
    LOOKS,
    TITLES,
    Architecture,
    Block,
    Layer,
    Role,
    Side,
    Stack,
    Sublayer,
    architecture_of_sizes,
    with_parameters,
)
from transformer_viz.model.sizes import Sizes
from transformer_viz.numbers_in_words import count_words
from transformer_viz.readers.huggingface.attention import Call, Place
from transformer_viz.readers.huggingface.watching import Seen, watched

_TOLERANCE = 1e-4
_LAYER = re.compile(r"^.*?\.\d+(?=\.|$)")
_POSITIONS = re.compile("pos|wpe", re.IGNORECASE)


class Event(NamedTuple):
    """A module that was called: its name, what it was given first, what it gave, and the call of attention within, if any."""

    name: str
    module: nn.Module
    given: Tensor
    gave: Tensor
    call: Call | None = None


class Part(NamedTuple):
    """A norm; or what stands between norms: attention with what follows it, or a feed-forward layer."""

    is_norm: bool
    events: tuple[Event, ...]

    @property
    def given(self) -> Tensor:
        """What it reads."""
        return self.events[0].given

    @property
    def gave(self) -> Tensor:
        """What it gives."""
        return self.events[-1].gave

    @property
    def n_parameters(self) -> int:
        """Of its modules."""
        return sum(parameter.numel() for event in self.events for parameter in event.module.parameters())


class Fitted(NamedTuple):
    """A sublayer whose numbers add up."""

    part: Part
    before: Part | None
    within: Part | None
    after: Part | None


@torch.inference_mode()
def architecture(model: Any, places: dict[Side, tuple[Place, ...]], sizes: Sizes) -> Architecture:
    """Of a model that nobody else runs yet.

    Args:
        model: with our attention in its place.
        places: of its calls of attention, in their order.
        sizes: of the model.
    """
    stacks = []
    for side, run in _runs(model, places):
        with watched(model) as seen:
            run()
        stack = _stack(side, _with_calls(seen), places[side], sizes, model.get_output_embeddings())
        if stack is None:
            return architecture_of_sizes(sizes)
        stacks.append(stack)
    return Architecture(tuple(stacks))


def _runs(model: Any, places: dict[Side, tuple[Place, ...]]) -> Iterator[tuple[Side, Callable[[], Any]]]:
    ids = torch.tensor([[5, 7, 6]], device=model.device) % model.get_input_embeddings().weight.shape[0]
    if not model.config.is_encoder_decoder:
        yield ("decoder" if places["decoder"] else "encoder"), lambda: model(input_ids=ids)
        return
    memory = model.get_encoder()(input_ids=ids)
    yield "encoder", lambda: model.get_encoder()(input_ids=ids)
    yield "decoder", lambda: model(encoder_outputs=memory, decoder_input_ids=ids[:, :2])


def _with_calls(seen: Seen) -> list[Event]:
    """The modules, each with the call of attention that was in it."""
    events, calls = list[Event](), dict[nn.Module, Call]()
    for each in seen:
        if isinstance(each, Call):
            calls[each.module] = each
        else:
            events.append(Event(*each, calls.pop(each.module, None)))
    return events


# ---- the layers


def _stack(side: Side, seen: list[Event], places: Sequence[Place], sizes: Sizes, output: Any) -> Stack | None:
    """None where not everything adds up."""
    names = {match[0] for event in seen if event.call is not None and (match := _LAYER.match(event.name))}
    ends = [place for place, event in enumerate(seen) if event.name in names]
    if not ends or sum(event.call is not None for event in seen) != len(places):
        return None
    layers, numbers, left = [], [], iter(places)
    for start, end in pairwise([-1, *ends]):
        whole = seen[end]
        inner = [event for event in seen[start + 1 : end] if event.name.startswith(f"{whole.name}.")]
        fitted = _fit(_parts(inner), whole.given, whole.gave)
        kinds = [next(left) for each in fitted or () if any(event.call for event in each.part.events)]
        if not fitted or not kinds:
            return None
        numbers.append(kinds[0][1])
        layers.append(_OfLayer(side, kinds[0][1], sizes).sublayers(fitted, kinds))
    before = [event for event in seen[: ends[0]] if not event.name.startswith(f"{seen[ends[0]].name}.")]
    begin, end = _begin(side, before, seen[ends[0]].given), _end(side, seen[ends[-1] + 1 :], output)
    return Stack(side, tuple(begin), tuple(numbers), tuple(layers), tuple(end))


def _parts(events: Sequence[Event]) -> list[Part]:
    """Norms, and what is between them."""
    attending = tuple(f"{event.name}." for event in events if event.call is not None)
    own = [event for event in events if not event.name.startswith(attending)] if attending else []
    steps = [event for event in own if event.call is not None or _is_norm(event.module) or _is_linear(event.module)]
    # Two norms may follow each other, of which one is of what was added and one of what is read next.
    groups = groupby(enumerate(steps), lambda step: (norm := _is_norm(step[1].module), norm and step[0]))
    return [Part(is_norm, tuple(event for _, event in group)) for (is_norm, _), group in groups]


def _fit(parts: Sequence[Part], stream: Tensor, end: Tensor) -> list[Fitted] | None:
    """Sublayers that lead from what a layer is given to what it gives; None where none do."""
    if not parts:
        return [] if _is(stream, end) else None
    before, rest = (parts[0], parts[1:]) if parts[0].is_norm else (None, parts)
    if not rest or rest[0].is_norm or (before is not None and not _is(before.given, stream)):
        return None
    part, rest = rest[0], rest[1:]
    if sum(event.call is not None for event in part.events) > 1 or not _is(
        part.given, stream if before is None else before.gave
    ):
        return None
    if part.gave.numel() != stream.numel():
        return None
    added = part.gave.reshape(stream.shape)
    ways = [(rest, stream + added, None, None)]
    if rest and rest[0].is_norm:
        norm = rest[0]
        if _is(norm.given, added):
            ways.append((rest[1:], stream + norm.gave.reshape(stream.shape), norm, None))
        if _is(norm.given, stream + added):
            ways.append((rest[1:], norm.gave, None, norm))
    for left, then, within, after in ways:
        if (others := _fit(left, then, end)) is not None:
            return [Fitted(part, before, within, after), *others]
    return None


def _is(a: Tensor, b: Tensor) -> bool:
    """Whether two are the same numbers, perhaps with their rows in one row of rows."""
    if a.numel() != b.numel() or a.shape[-1] != b.shape[-1]:
        return False
    return torch.allclose(a.reshape(-1), b.reshape(-1), rtol=_TOLERANCE, atol=_TOLERANCE * float(b.abs().max()))


def _is_linear(module: nn.Module) -> bool:
    """With one matrix: also the Conv1D of transformers."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() == 2 and not _is_table(module)


def _is_norm(module: nn.Module) -> bool:
    parameters = [*module.parameters()]
    is_named = "Norm" in type(module).__name__
    return next(module.children(), None) is None and (is_named or (bool(parameters) and all(p.dim() == 1 for p in parameters)))


# ---- as blocks


@dataclass(frozen=True)
class _OfLayer:
    """Makes the blocks of one layer."""

    side: Side
    number: int
    sizes: Sizes

    def sublayers(self, fitted: Sequence[Fitted], places: Sequence[Place]) -> Layer:
        left = iter(places)
        return tuple(
            self._sublayer(each, next(left) if any(event.call for event in each.part.events) else None) for each in fitted
        )

    def _sublayer(self, fitted: Fitted, place: Place | None) -> Sublayer:
        name = "feed_forward" if place is None else place[0]
        at = f"{self.side}.{self.number}.{name}"
        block = self._feed_forward(fitted.part, at) if place is None else self._attention(fitted.part, place, at)
        norms: dict[str, Any] = {
            slot: _norm(part.events[0], f"{at}.{slot}", words, self.number)
            for slot, words in (
                ("before", "A copy of the stream, before it is read:"),
                ("within", "What is added, before the addition:"),
                ("after", "The stream, after the addition:"),
            )
            if (part := getattr(fitted, slot)) is not None
        }
        return Sublayer(block, **norms)

    def _attention(self, part: Part, place: Place, at: str) -> Block:
        kind, number = place
        call = next(event.call for event in part.events if event.call is not None)
        n_heads, n_shared = call.weights.shape[1], call.weights.shape[1] // call.key.shape[1]
        window = self.sizes.windows.get(kind, {}).get(number)
        far = f", {window:,} positions far" if window else ""
        shared = f", {n_shared} heads to a key and value" if n_shared > 1 else ""
        widths = f"{count_words(n_heads, 'head')} × d_k {call.query.shape[-1]}{shared}, from d_model {part.given.shape[-1]}"
        return Block(
            role="attention",
            title=TITLES[kind],
            sentence=f"{LOOKS[kind]}{far}: {widths}{with_parameters(part.n_parameters)}.",
            place=at,
            module=part.events[0].name,
            n_parameters=part.n_parameters,
            kind=kind,
            layer=number,
        )

    def _feed_forward(self, part: Part, at: str) -> Block:
        inner = max(event.gave.shape[-1] for event in part.events)
        gate = ", with a gate," if len(part.events) > 2 else ""
        words = f"Each vector by itself goes from d_model {part.given.shape[-1]} to d_ff {inner}{gate} and back"
        return Block(
            role="feed-forward",
            title="Feed-forward",
            sentence=f"{words}{with_parameters(part.n_parameters)}.",
            place=at,
            module=part.events[0].name,
            n_parameters=part.n_parameters,
            layer=self.number,
        )


def _norm(event: Event, place: str, words: str, number: int | None = None, title: str = "Norm") -> Block:
    n = sum(parameter.numel() for parameter in event.module.parameters())
    learned = "is normalized and scaled by learned numbers" if n else "is normalized"
    sentence = f"{words} each vector {learned}{with_parameters(n)}."
    return Block(role="norm", title=title, sentence=sentence, place=place, module=event.name, n_parameters=n, layer=number)


def _begin(side: Side, events: Sequence[Event], stream: Tensor) -> Iterator[Block]:
    """From tokens to what the first layer is given."""
    steps = [event for event in events if _is_table(event.module) or _is_norm(event.module) or _is_linear(event.module)]
    tables = [event for event in steps if _is_table(event.module)]
    after = next((event.given for event in steps if not _is_table(event.module)), stream)
    # Rows as they stand in the table: some modules scale what they look up.
    rows = [_weight(event.module)[event.given] for event in tables[:1] if not event.given.is_floating_point()]
    scale = _scale([*rows, *(event.gave for event in tables[1:])], after)
    for number, event in enumerate(steps):
        place = f"{side}.begin.{number}"
        if _is_norm(event.module):
            yield _norm(event, place, "The embeddings:", title="Embedding norm")
        elif _is_linear(event.module):
            yield _linear(event, place)
        else:
            yield _tokens(event, place, scale) if event is tables[0] else _added(event, place, is_added=scale is not None)


def _end(side: Side, events: Sequence[Event], output: Any) -> Iterator[Block]:
    """From what the last layer gives to logits, or to what a decoder reads of its encoder."""
    for number, event in enumerate(event for event in events if _is_norm(event.module) or _is_linear(event.module)):
        place = f"{side}.end.{number}"
        if event.module is output:
            yield _logits(event, place)
        elif _is_norm(event.module):
            is_first = number == 0
            words = f"What leaves the {side}'s last layer:" if is_first else "What was made of it:"
            yield _norm(event, place, words, title="Final norm" if is_first else "Norm")
        else:
            yield _linear(event, place)


def _scale(given: Sequence[Tensor], total: Tensor) -> float | None:
    """What tokens are multiplied by before the others are added, 1 or √d_model; None where that is not what is done."""
    if any(each.shape[-1] != total.shape[-1] for each in given) or not given:
        return None
    others = sum(given[1:], torch.zeros_like(given[0]))
    return next((scale for scale in (1.0, math.sqrt(total.shape[-1])) if _is(given[0] * scale + others, total)), None)


def _tokens(event: Event, place: str, scale: float | None) -> Block:
    size, width = _weight(event.module).shape
    times = {None: "; what else is added to it is not seen", 1.0: ""}.get(scale, f", times √{width}")
    words = f"Each token becomes a vector of d_model {width}, its row of a table of {size:,} tokens{times}"
    title = {None: "Embedding + …", 1.0: "Embedding"}.get(scale, "Embedding × √d")
    return _of_module(event, "embedding", title, f"{words}{{}}.", place)


def _added(event: Event, place: str, *, is_added: bool) -> Block:
    """A second table: of positions, or of what else is known of a token."""
    what = "Where a token stands" if _POSITIONS.search(event.name) else "Which of two texts a token is of"
    name = "positions" if _POSITIONS.search(event.name) else "segments"
    does = "is added to its vector" if is_added else "has a vector too"
    words = f"{what} {does}, from a table of {_weight(event.module).shape[0]:,}{{}}."
    return _of_module(event, "positions", f"+ {name}" if is_added else name, words, place)


def _linear(event: Event, place: str) -> Block:
    words = f"Each vector by itself goes from {event.given.shape[-1]} numbers to {event.gave.shape[-1]}{{}}."
    return _of_module(event, "feed-forward", "Linear", words, place)


def _logits(event: Event, place: str) -> Block:
    words = f"The vector of d_model {event.given.shape[-1]} becomes a logit for each of {event.gave.shape[-1]:,} tokens{{}}."
    return _of_module(event, "output", "Output projection", words, place)


def _of_module(event: Event, role: Role, title: str, sentence: str, place: str) -> Block:
    """`sentence` has a place for its parameters."""
    n = sum(parameter.numel() for parameter in event.module.parameters())
    said = sentence.format(with_parameters(n))
    return Block(role=role, title=title, sentence=said, place=place, module=event.name, n_parameters=n)


def _is_table(module: nn.Module) -> bool:
    return isinstance(module, nn.Embedding)


def _weight(module: nn.Module) -> Tensor:
    assert isinstance(module.weight, Tensor)
    return module.weight
