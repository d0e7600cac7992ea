"""A drawing of a model (`model/architecture.py`): each stack from its tokens below to its end above, as Vaswani et al. 2017,
figure 1. What a block does is said while it is pointed at, and an attention can be pressed.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from transformer_viz.language import later, say
from transformer_viz.model.architecture import Architecture, Block, Folded, Stack, Sublayer, unfolded
from transformer_viz.terms import Kind
from transformer_viz.views.components import markup

Place = tuple[Kind, int]
"""A kind of attention, and a layer from 0."""
_BEGINS = {"encoder": later("source tokens"), "decoder": later("tokens written so far")}
_BOX, _HIGH, _LIT, _STRIP, _SUM, _GAP, _SIDE, _BETWEEN, _TEXT = 134, 24, 38, 17, 7, 10, 14, 28, 16
"""Pixels: the boxes and their heights, the circle of an addition, the air below a box and beside it, between two
stacks, and how high words are."""


@dataclass(frozen=True)
class Marks:
    """The marks in a drawing.

    Attributes:
        focus: the attention that is lit, around whose layer the others are folded.
        head: of the focus, in words.
        may: attentions that can be pressed.
    """

    focus: Place | None = None
    head: str = ""
    may: Collection[Place] = ()


def show(
    architecture: Architecture,
    title: str,
    key: str,
    marks: Marks = Marks(),
    *,
    large: bool = False,
    on_press: Callable[[Block], None] | None = None,
) -> None:
    """Draws a model.

    Args:
        architecture: of the model.
        title: names the drawing.
        key: tells it from the page's others.
        marks: what is marked.
        large: for a projector.
        on_press: gets the block that was pressed.
    """
    parts: dict[str, list[Any]] = {name: [] for name in ("frames", "lines", "sums", "words", "blocks")}
    columns: list[_Column] = []
    for stack in architecture.stacks:
        left = 1 + len(columns) * (_BOX + 2 * _SIDE + _BETWEEN)
        column = _Column(stack.side if len(architecture.stacks) > 1 else "only", left, 1 if columns else -1, parts)
        column.draw(stack, marks, say("tokens") if column.side == "only" else say(_BEGINS[stack.side]))
        columns.append(column)
    if len(columns) > 1 and columns[1].crossed:
        encoder, decoder = columns
        encoder.connect_to(decoder)
    blocks = {block.place: block for block in architecture}

    def pressed(place: Any) -> None:
        if on_press is not None and isinstance(place, str) and place in blocks:
            on_press(blocks[place])

    size = {"width": columns[-1].left + columns[-1].width + 1, "height": max(column.top for column in columns) + 2}
    about: Any = {"title": title, "marks": marks, "untold": architecture.untold, "large": large, **size, **parts}
    markup.show("components/drawing.html", key, pressed, **about)


@dataclass
class _Column:
    """One stack, drawn upwards: `top` is the height reached so far. All are pixels from the bottom left.

    Attributes:
        side: which of the stacks.
        left: where it begins.
        outwards: on which side its residual connections are, 1 for the right one.
        parts: the lists of what is drawn, which it adds to.
        crossed: the heights of the attentions that look at the encoder.
    """

    side: str
    left: int
    outwards: int
    parts: dict[str, list[Any]]
    top: float = 0
    width: int = _BOX + 2 * _SIDE
    crossed: list[float] = field(default_factory=list)

    @property
    def middle(self) -> float:
        """The middle of its boxes."""
        return self.left + self.width / 2

    def draw(self, stack: Stack, marks: Marks, begins: str) -> None:
        """Draws the column, from its tokens on."""
        self.parts["words"].append((begins, self.middle, 0, "middle"))
        self.top = _TEXT
        for block in stack.begin:
            self._step(block, marks)
        for part in unfolded(stack.numbers, 0 if marks.focus is None else marks.focus[1]):
            if isinstance(part, Folded):
                self._fold(part, stack, marks)
            else:
                self._layer(say("layer {numbers}", numbers=stack.numbers[part] + 1), stack.layers[part], marks)
        for block in stack.end:
            self._step(block, marks)
        writes = any(block.role == "output" for block in stack.end)
        self._up(_GAP + 2, has_tip=writes)
        if writes:
            words = say("probabilities of the next token") if stack.side == "decoder" else say("probabilities at each place")
            self.parts["words"].append((words, self.middle, self.top, "middle"))
            self.top += _TEXT

    def connect_to(self, decoder: "_Column") -> None:
        """Draws the lines from what the encoder made into every cross-attention."""
        along, ends = self.left + self.width + _BETWEEN / 2, [self.top, *decoder.crossed]
        self._line((self.middle, self.top), (along, self.top))
        self._line((along, min(ends)), (along, max(ends)))
        for height in decoder.crossed:
            self._line((along, height), (decoder.middle - _BOX / 2, height), has_tip=True)

    def _line(self, *points: tuple[float, float], has_tip: bool = False) -> None:
        self.parts["lines"].append((" ".join(f"{x},{y}" for x, y in points), has_tip))

    def _up(self, by: float, *, has_tip: bool = False) -> None:
        self._line((self.middle, self.top), (self.middle, self.top + by), has_tip=has_tip)
        self.top += by

    def _put(self, block: Any, high: float, marks: Marks, *, is_crossed: bool = False) -> None:
        high = _LIT if block.kind is not None and (block.kind, block.layer) == marks.focus else high
        if block.kind == "cross" or is_crossed:
            self.crossed.append(self.top + high / 2)
        self.parts["blocks"].append((block, self.side, self.middle - _BOX / 2, self.top, _BOX, high))
        self.top += high

    def _step(self, block: Block, marks: Marks) -> None:
        self._up(_GAP)
        self._put(block, _STRIP if block.role == "norm" else _HIGH, marks)

    def _fold(self, part: Folded, stack: Stack, marks: Marks) -> None:
        within = [layer for number, layer in zip(stack.numbers, stack.layers, strict=True) if part.first <= number <= part.last]
        side, first, last = say(stack.side), part.first + 1, part.last + 1
        sentence = (
            say("Layer {first} of the {side}: the boxes of the focus go there.", side=side, first=first)
            if len(within) == 1
            else say(
                "Layers {first} to {last} of the {side}: the boxes of the focus go there.", side=side, first=first, last=last
            )
        )
        block = Block(
            role="fold",
            title=say("… {count} more", count=len(within)),
            sentence=sentence,
            place=f"{stack.side}.{part.first}-{part.last}",
        )
        is_crossed = any(sublayer.block.kind == "cross" for layer in within for sublayer in layer)
        self._up(_GAP)
        self._put(block, _HIGH, marks, is_crossed=is_crossed)

    def _layer(self, title: str, layer: tuple[Sublayer, ...], marks: Marks) -> None:
        self._up(_GAP)
        bottom = self.top
        last = None
        for sublayer in layer:
            last = self._around(sublayer, marks)
        # Its name stands beside its last addition, on the side where no residual connection is, or above all.
        inner = self.left + 7 if self.outwards > 0 else self.left + self.width - 7
        at = self.top if last is None else last - _TEXT / 2
        self.parts["words"].append((title, inner, at, "start" if self.outwards > 0 else "end"))
        self._up(_TEXT if last is None else 5)
        self.parts["frames"].append((self.left, bottom, self.width, self.top - bottom))

    def _around(self, sublayer: Sublayer, marks: Marks) -> float | None:
        """Gives the height of the addition, where there is one."""
        self._up(5)
        fork, at = self.top, None
        self._up(6)
        for block, high in ((sublayer.before, _STRIP), (sublayer.block, _HIGH), (sublayer.within, _STRIP)):
            if block is not None:
                self._put(block, high, marks)
                self._up(6)
        if sublayer.is_residual:
            at, side = self.top + _SUM, self.middle + self.outwards * (_BOX / 2 + 8)
            end = self.middle + self.outwards * _SUM
            self._line((self.middle, fork), (side, fork), (side, at), (end, at), has_tip=True)
            self.parts["sums"].append((self.middle, at, _SUM))
            self.top = at + _SUM
        if sublayer.after is not None:
            self._up(5)
            self._put(sublayer.after, _STRIP, marks)
        return at
