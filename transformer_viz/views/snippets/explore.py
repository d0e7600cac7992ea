"""Explore and Search: the player with its mosaics, the tree, and each tab below."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from transformer_viz.analysis.heads import Head
from transformer_viz.export.content import View
from transformer_viz.terms import Kind
from transformer_viz.views.snippets.lines import Code, assigned, call, literal, looks
from transformer_viz.views.snippets.runs import AnyRun, Kept, Measure, Run, load, program

DisplayOptions = Mapping[str, Any]
"""`theme`, `large` and `narrow`, as the page has them; what a figure has by default is not written."""
_Measures = Measure | Kept
_TRACE, _CHECKPOINT, _KIND = Code("trace"), Code("checkpoint"), Code("kind")


def player(run: AnyRun, now: View, given: DisplayOptions) -> str:
    """The focus map with its candidates, and the mosaics."""
    measure = run.measure
    return program(*run.lines(), *(measure.lines() if measure else []), *_pictures(now, given, measure))


def search(run: AnyRun, now: View, given: DisplayOptions, by_greedy: Run | None = None) -> str:
    """The tree, and the focus map and the mosaics of the hypothesis in it that is shown; above the tree what greedy decoding
    writes, which a file does not hold."""
    assert run.node is not None
    tree, greedy = looks(given, "theme", "large", "narrow"), []
    if by_greedy is not None:
        greedy = [by_greedy.made("greedy")]
        tree = {"greedy": Code("greedy"), **tree}
    return program(
        *run.whole().lines(),
        *greedy,
        assigned("tree", "tv.figures.search_tree", _TRACE, run.node, **tree),
        "tree.show()",
        "",
        *run.chosen(),
        *_pictures(now, given),
    )


def what_if(
    run: Run, change: Mapping[str, Any], kind: Kind, layer: int, head: Head, columns: int, given: DisplayOptions
) -> str:
    """Both runs side by side.

    Args:
        run: the run as it was.
        change: the keywords of `decode` that make the other one; empty where nothing is asked for.
        kind: `encoder`, `decoder` or `cross`.
        layer: from 0.
        head: from 0, or `mean` or `max`.
        columns: maps side by side.
        given: the page's looks.
    """
    if not change:
        return program(*run.lines())
    place = {"layer": layer, "head": head, **looks(given, "theme"), **({} if columns == 3 else {"columns": columns})}
    return program(
        *run.lines(),
        assigned("other", "tv.decode", _CHECKPOINT, run.text, **change),
        "print(trace.text, other.text, tv.compare(trace, other).parted)",
        assigned("figure", "tv.figures.before_and_after", _TRACE, Code("other"), kind, **place),
        "figure.show()",
    )


def heads(run: AnyRun, tint: str, given: DisplayOptions, *, with_untrained: bool) -> str:
    """The tiles and the table of grades."""
    beside = [call("tv.untrained", _CHECKPOINT, _TRACE)] if with_untrained else []
    return program(
        *run.lines(),
        assigned("grades", "tv.analysis.alignment", _TRACE, *beside),
        assigned("figure", "tv.figures.grades", Code("grades"), tint, **looks(given, "theme", "narrow")),
        "figure.show()",
        "table = grades.to_frame()",
    )


def by_length(checkpoint: str, device: str, samples: int, given: DisplayOptions) -> str:
    """The curve, and its numbers."""
    return program(
        *load(checkpoint, device),
        assigned("found", "tv.accuracy_by_length", _CHECKPOINT, samples=samples),
        assigned("figure", "tv.figures.accuracy_by_length", Code("found"), **looks(given, "theme", "narrow")),
        "figure.show()",
        "table = found.to_frame()",
    )


def masks_in_force(run: AnyRun, given: DisplayOptions, places: Mapping[Kind, tuple[int, int]] = MappingProxyType({})) -> str:
    """A matrix a kind.

    Args:
        run: the run.
        given: the page's looks.
        places: layer and head of every kind, where heads differ in their masks.
    """
    theme = looks(given, "theme")
    if places:
        drawn = [f"{call('tv.figures.mask', _TRACE, kind, *place, **theme)}.show()" for kind, place in places.items()]
        return program(*run.lines(), *drawn)
    return program(*run.lines(), "for kind in trace.kinds:", f"    {call('tv.figures.mask', _TRACE, _KIND, **theme)}.show()")


def inside(run: AnyRun, place: tuple[Kind, int, int, int], address: str) -> str:
    """Every number of one row of one head, and the arithmetic of one of them: the weights where none is named.

    Args:
        run: by tokens.
        place: kind, layer, head and row.
        address: of the number that is explained.
    """
    of_file = f"inside = next(inside for inside in tv.Inside.of(trace) if inside.place == {literal(place)})"
    asked = call("tv.analysis.explain", Code("inside"), address) if address else "inside.weights"
    looked = assigned("inside", "tv.inside", _CHECKPOINT, _TRACE, *place) if isinstance(run, Run) else of_file
    return program(*run.lines(), looked, f"print({asked})")


def remembered(run: AnyRun, layer: int, theme: str) -> str:
    """The memory of a recurrence."""
    drawn = looks({"theme": theme}, "theme")
    return program(
        *run.lines(),
        assigned("found", "tv.remembered", _CHECKPOINT, _TRACE),
        assigned("figure", "tv.figures.remembered", Code("found"), layer=layer, **drawn),
        "figure.show()",
        "print(found.apart)",
    )


def numbers(run: AnyRun, kind: Kind, layer: int, head: Head) -> str:
    """The focus as a table."""
    one = [f'table = table[table["head"] == {literal(head)}]'] if isinstance(head, int) else []
    return program(
        *run.lines(),
        "table = trace.to_frame()",
        f"table = table[(table.kind == {literal(kind)}) & (table.layer == {literal(layer)})]",
        *one,
    )


def this_run(run: AnyRun, *, with_metrics: bool = False) -> str:
    """What made the run, and how good its model is where that was measured."""
    return program(*run.lines(), "print(trace.made_by)", *(["print(checkpoint.metrics)"] if with_metrics else []))


def file(run: AnyRun, name: str, options: Mapping[str, Any]) -> str:
    """The file of the tab Export; `options` are those of `tv.export.save`. A trace keeps what was measured."""
    measure = run.measure if isinstance(run, Run) and name.endswith(".npz") else None
    return program(*run.lines(), *(measure.kept() if measure else []), call("tv.export.save", _TRACE, name, **options))


def _pictures(now: View, given: DisplayOptions, measure: _Measures | None = None) -> list[str]:
    """The focus map, and under it the mosaics with the focus outlined."""
    place = {"layer": now.layer, "head": now.head, "step": now.step}
    drawn = looks(given, "theme", "large", "narrow", "scale")
    measured = {} if measure is None else {"measure": measure.of(literal(now.kind))}
    return [
        assigned("figure", "tv.figures.player", _TRACE, now.kind, **place, **drawn, **measured),
        "figure.show()",
        *mosaics("trace", now.kind, now.layer, now.head, given, measure),
    ]


def mosaics(
    trace: str, kind: Kind, layer: int, head: Head, given: DisplayOptions, measure: _Measures | None = None
) -> list[str]:
    """All heads of every kind of a trace, by the name of its variable."""
    drawn = {**looks(given, "theme", "large", "scale"), **({} if measure is None else {"measure": measure.of("kind")})}
    tile = call("tv.figures.mosaic", Code(trace), _KIND, Code("tile"), **drawn)
    return [
        f"for kind in {trace}.kinds:",
        f"    tile = {literal((layer, head))} if kind == {literal(kind)} else None",
        f"    {tile}.show()",
    ]
