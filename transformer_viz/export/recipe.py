"""The lines of Python that make again what is on the screen."""

from collections.abc import Mapping
from typing import Any

from transformer_viz.export.content import View


def lines(
    text: str,
    checkpoint: str,
    now: View,
    *,
    device: str = "auto",
    decode: Mapping[str, Any] | None = None,
    node: int | None = None,
    looks: Mapping[str, Any] | None = None,
) -> str:
    """A program that ends with `figure`, the focus map with its candidates.

    Args:
        text: the source text.
        checkpoint: a name that `load_checkpoint` knows.
        now: kind, layer, head and step.
        device: as it was asked for.
        decode: the other keywords of `decode`.
        node: of a beam search, the node whose path is shown.
        looks: keywords of `figures.player`; what is as by default is left out.
    """
    made = [
        f"checkpoint = tv.load_checkpoint({_call(checkpoint, device=device)})",
        f"trace = tv.decode(checkpoint, {_call(text, **(decode or {}))})",
    ]
    return _program(made, now, node, looks)


def file_lines(file: str, now: View, *, node: int | None = None, looks: Mapping[str, Any] | None = None) -> str:
    """As `lines`, of a trace file."""
    return _program([f"trace = tv.load_trace({file!r})"], now, node, looks)


def _program(made: list[str], now: View, node: int | None, looks: Mapping[str, Any] | None) -> str:
    """The lines that draw what `made` makes."""
    is_default = {"theme": "light", "large": False, "with_answer": True, "narrow": False}
    drawn = {name: value for name, value in (looks or {}).items() if is_default.get(name) != value}
    place = {"layer": now.layer, "head": now.head, "step": now.step, **drawn}
    program = [
        "import transformer_viz as tv",
        *(["from transformer_viz.trace.hypotheses import at_node"] if node is not None else []),
        "",
        *made,
        *([f"trace = at_node(trace, {node})"] if node is not None else []),
        f"figure = tv.figures.player(trace, {_call(now.kind, **place)})",
        "figure.show()",
    ]
    return "\n".join(program)


def _call(first: str, **keywords: Any) -> str:
    return ", ".join([repr(first), *(f"{name}={value!r}" for name, value in keywords.items())])
