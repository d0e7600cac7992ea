"""A drawing of a model (`model/architecture.py`), from its tokens below to what it writes above: SVG, made in the browser.

A press on an attention is told to Python; all that is said of a block stands above the drawing while it is pointed at.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz.model.architecture import Architecture, Block, Folded, Stack, Sublayer, unfolded
from transformer_viz.terms import Kind

Place = tuple[Kind, int]
"""A kind of attention, and a layer from 0."""
_BEGINS = {"encoder": "source tokens", "decoder": "tokens written so far"}


@dataclass(frozen=True)
class Marks:
    """What is marked in a drawing.

    Attributes:
        focus: the attention that is lit, around whose layer the others are folded.
        head: of the focus, in words.
        may: attentions that can be pressed.
        different: places of blocks that another model does not have, or has otherwise.
    """

    focus: Place | None = None
    head: str = ""
    may: Collection[Place] = ()
    different: Collection[str] = ()

    def block(self, block: Block) -> dict[str, Any]:
        """A block as the browser gets it."""
        at = None if block.kind is None or block.layer is None else (block.kind, block.layer)
        return {
            "place": block.place,
            "role": block.role,
            "title": block.title,
            "sentence": block.sentence,
            "kind": block.kind,
            "layer": block.layer,
            "may": at in self.may,
            "lit": f"layer {at[1] + 1}, {self.head}" if at is not None and at == self.focus else "",
            "marked": block.place in self.different,
        }


def data(architecture: Architecture, title: str, marks: Marks = Marks(), *, large: bool = False) -> dict[str, Any]:
    """What the component is sent; `title` names the drawing, and `large` is for a projector."""
    stacks = [
        {
            "tokens": "tokens" if len(architecture.stacks) == 1 else _BEGINS[stack.side],
            "begin": [*map(marks.block, stack.begin)],
            "layers": [*_layers(stack, marks)],
            "end": [*map(marks.block, stack.end)],
            "writes": "probabilities of the next token" if stack.side == "decoder" else "probabilities at each place",
        }
        for stack in architecture.stacks
    ]
    return {"title": title, "stacks": stacks, "untold": architecture.untold, "large": large}


def _layers(stack: Stack, marks: Marks) -> Iterator[dict[str, Any]]:
    for part in unfolded(stack.numbers, 0 if marks.focus is None else marks.focus[1]):
        if isinstance(part, Folded):
            yield {"fold": _folded(part, stack)}
        else:
            sublayers = [_sublayer(sublayer, marks) for sublayer in stack.layers[part]]
            yield {"title": f"layer {stack.numbers[part] + 1}", "sublayers": sublayers}


def _sublayer(sublayer: Sublayer, marks: Marks) -> dict[str, Any]:
    blocks = {name: getattr(sublayer, name) for name in ("before", "block", "within", "after")}
    drawn = {name: marks.block(block) for name, block in blocks.items() if block is not None}
    return {**drawn, "isResidual": sublayer.is_residual}


def _folded(part: Folded, stack: Stack) -> dict[str, Any]:
    within = [layer for number, layer in zip(stack.numbers, stack.layers, strict=True) if part.first <= number <= part.last]
    which = f"Layer {part.first + 1}" if len(within) == 1 else f"Layers {part.first + 1} to {part.last + 1}"
    return {
        "place": f"{stack.side}.{part.first}-{part.last}",
        "role": "fold",
        "title": f"… {len(within)} more",
        "sentence": f"{which} of the {stack.side}: the boxes of the focus go there.",
        "isCrossed": any(sublayer.block.kind == "cross" for layer in within for sublayer in layer),
    }


def _nobody(place: Any) -> None:
    """Hears nothing."""


def show(content: dict[str, Any], key: str, on_press: Callable[[Any], None] = _nobody) -> None:
    """Mounts it; `on_press` gets what the browser says was pressed: `kind`, `layer` and the player's `step`, or nonsense."""
    _component()(key=key, data=content, on_press_change=lambda: on_press((st.session_state.get(key) or {}).get("press")))


@cache
def _component() -> Any:
    """Registered once a process: the files are ours, and what is said of a model comes as data only."""
    css, js = (Path(__file__).with_name(f"drawing.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    return st.components.v2.component("transformer-viz-drawing", html='<div class="drawing"></div>', css=css, js=js)
