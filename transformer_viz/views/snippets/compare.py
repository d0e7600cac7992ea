"""Compare: two runs, and `difference`, A − B of the head in focus."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer_viz.analysis.heads import Head
from transformer_viz.terms import Kind
from transformer_viz.views.snippets.lines import Code, assigned
from transformer_viz.views.snippets.runs import IMPORT, program

Names = dict[tuple[str, str, int | None], Code]
"""Variables of the loaded models, by checkpoint, device and snapshot."""

_DEFAULTS = {"theme": "light", "large": False, "limit": 1.0, "columns": 3}


@dataclass(frozen=True)
class Side:
    """How one side comes about.

    Attributes:
        file: name of a trace file; then nothing else counts.
        text: the source.
        checkpoint: a name that `load_model` knows.
        device: as it was asked for.
        snapshot: a step of the training, or None.
        decode: keywords of `decode`.
        reads_the_other: whether it reads the output of the other side, which must not do the same.
        has_task: whether the model is one of ours.
        calls: methods of the model that switch how it reads and writes.
        by_words: pieces are pooled to words.
    """

    file: str | None = None
    text: str = ""
    checkpoint: str = ""
    device: str = "auto"
    snapshot: int | None = None
    decode: Mapping[str, Any] = field(default_factory=dict)
    reads_the_other: bool = False
    has_task: bool = True
    calls: tuple[str, ...] = ()
    by_words: bool = False


def lines(
    a: Side,
    b: Side,
    kind: Kind,
    layer: int,
    head: Head,
    b_layer: int | None = None,
    b_head: Head | None = None,
    *,
    looks: Mapping[str, Any] | None = None,
) -> str:
    """A program that ends with `difference`, float32 (query, key), and `figure`, the three maps.

    Args:
        a: how the first run comes about.
        b: the second.
        kind: of attention.
        layer: of A, from 0.
        head: of A.
        b_layer: of B; None is A's.
        b_head: likewise.
        looks: keywords of `figures.difference`; what is as by default is left out.
    """
    ordered = [("a", a, "b"), ("b", b, "a")]
    if a.reads_the_other:
        ordered.reverse()
    names: Names = {}
    made = [line for name, run, other in ordered for line in _side(name, run, other, names)]
    place = {"layer": layer, "head": head, "b_layer": b_layer, "b_head": b_head}
    where = {name: value for name, value in place.items() if value is not None}
    drawn = {name: value for name, value in (looks or {}).items() if _DEFAULTS.get(name) != value}
    return program(
        IMPORT,
        "",
        *made,
        *(assigned(name, "tv.by_words", Code(name)) for name, run in (("a", a), ("b", b)) if run.by_words),
        assigned("difference", "tv.compare(a, b).difference", kind, **where),
        assigned("figure", "tv.figures.difference", Code("a"), Code("b"), kind, **where, **drawn),
        "figure.show()",
    )


def _side(name: str, side: Side, other: str, names: Names) -> list[str]:
    """The lines that make one run; a model that both use is loaded once."""
    if side.file is not None:
        return [assigned(name, "tv.load_trace", side.file)]
    made, reads = [], {}
    finished, wanted = (side.checkpoint, side.device, None), (side.checkpoint, side.device, side.snapshot)
    if finished not in names:
        names[finished] = Code(f"model_{len(names) + 1}")
        asked = {} if side.device == "auto" else {"device": side.device}
        made.append(assigned(names[finished], "tv.load_model", side.checkpoint, **asked))
        made += [f"{names[finished]} = {names[finished]}.{each}" for each in side.calls]
    if wanted not in names:
        names[wanted] = Code(f"model_{len(names) + 1}")
        made.append(assigned(names[wanted], "tv.load_snapshot", names[finished], side.snapshot))
    if side.reads_the_other and not side.has_task:
        reads = {"target": Code(f"{other}.text")}
    elif side.reads_the_other:
        made.append(f'target = tuple(token for token in {other}.output_tokens if token != "<end>")')
        reads = {"target": Code("target")}
    return [*made, assigned(name, "tv.decode", names[wanted], side.text, **side.decode, **reads)]
