"""Compare: two runs, and `difference`, A − B of the head in focus."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer_viz.addresses import Place
from transformer_viz.analysis.heads import Head
from transformer_viz.terms import Kind
from transformer_viz.views.snippets.lines import Code, assigned, literal
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


@dataclass(frozen=True)
class Patch:
    """What of A was put into B.

    Attributes:
        by: `head` or `layer`.
        kind: of attention; None = all that the model has.
        layers: their numbers, from 0; None = all.
        place: whose run is shown; None = the one with the largest effect.
        query: likewise.
    """

    by: str = "head"
    kind: Kind | None = None
    layers: tuple[int, ...] | None = None
    place: Place | None = None
    query: int = 0


def lines(
    a: Side,
    b: Side,
    kind: Kind,
    layer: int,
    head: Head,
    in_b: tuple[int | None, Head | None] = (None, None),
    *,
    looks: Mapping[str, Any] | None = None,
    patch: Patch | None = None,
) -> str:
    """A program with `difference`, float32 (query, key), and `figure`, the three maps.

    Args:
        a: how the first run comes about.
        b: the second.
        kind: of attention.
        layer: of A, from 0.
        head: of A.
        in_b: layer and head of B; None is A's.
        looks: keywords of `figures.difference`; what is as by default is left out.
        patch: what of A was put into B, if it was: both are of one model.
    """
    ordered = [("a", a, "b"), ("b", b, "a")]
    if a.reads_the_other:
        ordered.reverse()
    names: Names = {}
    made = [line for name, run, other in ordered for line in _side(name, run, other, names)]
    place = {"layer": layer, "head": head, "b_layer": in_b[0], "b_head": in_b[1]}
    where = {name: value for name, value in place.items() if value is not None}
    drawn = {name: value for name, value in (looks or {}).items() if _DEFAULTS.get(name) != value}
    imports = [IMPORT] if patch is None or patch.place is None else [IMPORT, "from transformer_viz.edits import Place"]
    return program(
        *imports,
        "",
        *made,
        *(_patched(patch, names[a.checkpoint, a.device, a.snapshot]) if patch else ()),
        *(assigned(name, "tv.by_words", Code(name)) for name, run in (("a", a), ("b", b)) if run.by_words),
        assigned("difference", "tv.compare(a, b).difference", kind, **where),
        assigned("figure", "tv.figures.difference", Code("a"), Code("b"), kind, **where, **drawn),
        "figure.show()",
    )


def _patched(patch: Patch, model: Code) -> list[str]:
    """From the effect of every place, `found`, to the run with one place of A, `changed`."""
    asked = {"by": patch.by, "kind": patch.kind, "layers": patch.layers}
    asked = {name: value for name, value in asked.items() if value not in (None, "head")}
    place = "found.largest(1)[0]"
    if patch.place is not None:
        at = ", ".join(literal(part) for part in (patch.place.kind, patch.place.layer, patch.place.head) if part is not None)
        place = f"found.at(Place({at}), {patch.query})"
    a, b = Code("a"), Code("b")
    one = (Code("best.place"), Code("best.query"))
    return [
        assigned("found", "tv.patch", model, a, b, **asked),
        f"best = {place}",
        assigned("changed", "tv.patched_run", model, a, b, *one),
        assigned(
            "effects", "tv.figures.patching", Code("found"), a, b, Code("best.place.kind"), Code("(best.place, best.query)")
        ),
        "effects.show()",
        "",
    ]


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
