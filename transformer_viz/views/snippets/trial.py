"""Explore, the tab On trial: the calls behind each question."""

from collections.abc import Sequence

from transformer_viz.addresses import HeadPlace
from transformer_viz.terms import Kind
from transformer_viz.views.snippets.explore import DisplayOptions
from transformer_viz.views.snippets.lines import Code, assigned, call, literal, looks
from transformer_viz.views.snippets.runs import AnyRun, program

_CHECKPOINT, _TRACE, _FOUND = Code("checkpoint"), Code("trace"), Code("found")


def verdict(run: AnyRun, kind: Kind, modes: Sequence[str], name: str) -> str:
    """The table of each way to take tokens away, and one map of it."""
    judged = [assigned(mode, "tv.verdict", _CHECKPOINT, _TRACE, mode=mode, kind=kind) for mode in modes]
    said = [f"print({mode}.at({literal(name)}), {mode}.n_judged, {mode}.n_left_out)" for mode in modes]
    return program(*run.lines(), *judged, *said, f"table = {modes[0]}.to_frame()")


def knock_out(run: AnyRun, lines: Sequence[str], n_drawn: int, longest: int | None, how: str, head: HeadPlace | None) -> str:
    """Over texts, without one head or each.

    Args:
        run: the run, which is the only text where there are no others.
        lines: a person's texts.
        n_drawn: how many are drawn of the task, where there are no lines.
        longest: tokens written for each.
        how: what stands in the place of a head.
        head: which, or None for every one.
    """
    written = {} if longest is None else {"max_length": longest}
    texts = [f"texts = {literal(list(lines))}"]
    if not lines:
        imported = "from transformer_viz.attribution.verdict import texts_of"
        texts = [imported, f"texts = {call('texts_of', _CHECKPOINT, n_drawn, 0)}"]
    decoded = call("tv.decode", _CHECKPOINT, Code("text"), **written)
    made = [*texts, f"traces = [{decoded} for text in texts]"] if lines or n_drawn else ["traces = [trace]"]
    alone = {} if head is None else {"heads": [call("tv.analysis.HeadPlace", head.kind, head.layer, head.head)]}
    found = assigned("found", "tv.knock_out", _CHECKPOINT, Code("traces"), how=how, **alone)
    return program(*run.lines(), *made, found, "print(found.exact_before, found.heads)")


def curves(run: AnyRun, kind: Kind, mode: str, maps: Sequence[str], given: DisplayOptions) -> str:
    """The two curves."""
    return program(
        *run.lines(),
        assigned("found", "tv.faithfulness", _CHECKPOINT, _TRACE, list(maps), mode=mode, kind=kind),
        assigned("figure", "tv.figures.faithfulness", _FOUND, **looks(given, "theme", "large", "narrow")),
        "figure.show()",
    )


def counter_proof(run: AnyRun, scopes: Sequence[str], place: HeadPlace, given: DisplayOptions) -> str:
    """The map, and the farthest found of each scope."""
    proofs = [f"    {call('tv.counter_proof', _CHECKPOINT, _TRACE, scope=scope)}," for scope in scopes]
    drawn = {**looks(given, "theme", "large"), **({"columns": 1} if given.get("narrow") else {})}
    return program(
        *run.lines(),
        "found = [",
        *proofs,
        "]",
        "print(*(proof.words for proof in found), sep='\\n')",
        assigned("figure", "tv.figures.counter_proof", _TRACE, _FOUND, place.layer, place.head, **drawn),
        "figure.show()",
    )
