"""Compare: two runs side by side, and every map with its signed difference."""

from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.compare_words import heads_off_words, tokens_read
from transformer_viz.analysis.comparison import IN_A, IN_B, IN_BOTH, Comparison, compare
from transformer_viz.errors import TransformerVizError
from transformer_viz.export.strips import legend
from transformer_viz.figures.attention import SWITCHED_OFF
from transformer_viz.figures.difference_mosaic import difference_mosaic
from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.mosaic import mosaic
from transformer_viz.figures.tiles import tile_map
from transformer_viz.numbers_in_words import count_words
from transformer_viz.terms import KIND_TITLES, Kind, head_title
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache import model_list, runs
from transformer_viz.views.compare import patching, place, shown, sides
from transformer_viz.views.compare.sides import A, B
from transformer_viz.views.components import (
    bar,
    chart,
    code,
    deep_mosaic,
    opened,
    player,
    screen,
    style,
    term_tips,
)
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.state import display_options, link, words
from transformer_viz.vocabulary import END

TITLE, ICON, ORDER = "Compare", ":material/compare:", 3


EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "The same day, written in two orders": (
        {"text": "3 March 2024", "checkpoint": "dates"},
        {"text": "March 3 2024", "checkpoint": "dates"},
    ),
    "After training and at its 141st step": (
        {"text": "reversethis", "checkpoint": "reverse-small"},
        {"text": "reversethis", "checkpoint": "reverse-small", "snapshot": 141, "strategy": "forced"},
    ),
    "Two letters changed": (
        {"text": "reversethis", "checkpoint": "reverse"},
        {"text": "reversethat", "checkpoint": "reverse"},
    ),
    "Greedy decoding and beam search": (
        {"text": "thisqaipa", "checkpoint": "reverse-small"},
        {"text": "thisqaipa", "checkpoint": "reverse-small", "strategy": "beam"},
    ),
    "Two models of different size": (
        {"text": "reversethis", "checkpoint": "reverse"},
        {"text": "reversethis", "checkpoint": "reverse-small"},
    ),
}
"""Sides that are worth seeing; a pair is offered where its checkpoints are here."""


def show() -> None:
    """Draws the page."""
    # The sides' boxes stand below the bar's, and are started by it.
    usable: list[str] = []
    chosen = bar.show("compare", with_models=True, instead=partial(_draw_in_bar, usable))
    if display_options.is_hidden("Two runs side by side"):
        return
    # Both sides' boxes; below each what is wrong with it.
    for keys in (A, B):
        sides.start(keys, usable)
    columns = screen.columns(2, "sides")
    for keys, column in zip((A, B), columns, strict=True):
        with column:
            sides.show(keys)
    asked = (sides.asked(A), sides.asked(B))
    (a, of_a), (b, of_b) = _run_sides(*asked, chosen.device)
    for side, error, column in zip(asked, (of_a, of_b), columns, strict=True):
        if error:
            # To have typed nothing is no mistake yet.
            (column.error if side.text else column.info)(literal(error), icon=":material/keyboard:")
    if a is None or b is None:
        # The side that could be run, by itself.
        for name, trace in (("A", a), ("B", b)):
            if trace is None or not trace.kinds:
                continue
            shown.show(shown.of_one(name, trace))
            state = st.session_state
            kind: Kind = state.kind if state.get("kind") in trace.kinds else trace.kinds[-1]
            alt = f"All layers and heads of {name}'s {KIND_TITLES[kind]}"
            with st.container(key="compare-maps"):
                chart.draw(plain(mosaic), trace, kind, height=420, key="compare-alone-chart", words=alt)
        return
    comparison = compare(*words.together(a, b))
    if not comparison.kinds:
        shown.show(shown.of_both(comparison))
        has = [" and ".join(KIND_TITLES[kind] for kind in run.kinds) or "none" for run in (comparison.a, comparison.b)]
        nothing = f"A and B have no kind of attention in common: A has {has[0]}, B has {has[1]}. Choose another run or file."
        st.info(nothing, icon=":material/compare:")
        return
    place.start(comparison)
    shown.show(shown.of_both(comparison), on_kind=lambda kind: place.go_to_farthest(kind, comparison))
    figure = _maps(comparison, with_words=words.is_offered(a, b))
    patched = patching.show((a, b), asked, chosen.device, st.session_state.kind)
    if not chosen.is_large:
        where = place.head_of_b(comparison)
        in_b = "".join(f", {name}={{}}" for name in where)
        difference = f"difference = {{}}.difference({{}}, {{}}, {{}}{in_b})"
        compared = Call(compare, comparison.a, comparison.b)
        code.show(*patched, Call(difference, compared, *_focus(), *where.values()), figure)


# ---- the two sides


def _draw_in_bar(usable: list[str], names: list[str]) -> None:
    """Draws what stands in the bar in place of one text and one checkpoint, and notes which models there are."""
    usable += names
    with st.popover("Examples", icon=":material/lightbulb:", help="Pairs that are worth seeing"):
        for number, (title, pair) in enumerate(EXAMPLES.items()):
            if {side["checkpoint"] for side in pair} <= {*names}:
                st.button(title, key=f"pair-{number}", on_click=_put, args=pair, width="stretch")
    st.button("Swap A and B", icon=":material/swap_horiz:", key="swap", on_click=sides.swap)
    with st.popover("Open files", icon=":material/folder_open:"):
        opened.box("compare-box")
        opened.say()
        st.caption("An opened file can be chosen in the first box of A and of B.")
    st.space("stretch")


def _put(a: dict[str, Any], b: dict[str, Any]) -> None:
    """Fills both sides with an example; layer and head are then where it differs most."""
    sides.put(A, a)
    sides.put(B, b)
    link.reset("kind", "layer", "head")


def _run_sides(a: sides.Asked, b: sides.Asked, device: str) -> tuple[tuple[Trace | None, str], tuple[Trace | None, str]]:
    """For each side its run, or None and why it has none; a side that reads the other one's output is run after it."""
    if a.reads_the_other and b.reads_the_other:
        nothing = None, "Each side reads what the other one writes. Let one of them write by itself."
        return nothing, nothing
    if a.reads_the_other:
        second = _run(b, device, None)
        return _run(a, device, second[0]), second
    first = _run(a, device, None)
    return first, _run(b, device, first[0])


def _run(asked: sides.Asked, device: str, other: Trace | None) -> tuple[Trace | None, str]:
    if asked.file is not None:
        return opened.get(asked.file).trace, ""
    try:
        model, how = model_list.load_any(asked.checkpoint, device), asked.keywords()
        if asked.reads_the_other:
            # What is wrong with its own text is said first.
            model.tokenizer.encode_source(asked.text)
            if other is None:
                return None, "This side reads what the other side writes, and the other side could not be run."
            if not other.output_tokens:
                file = "the other side's file does not say what was written"
                return None, f"This side reads what the other side writes, and {file}."
            # Tokens without `<end>`; where they are a tokenizer's own matter, the text.
            tokens = tuple(token for token in other.output_tokens if token != END)
            how["target"] = other.text if model.task is None else tokens
        return runs.run(model, asked.text, asked.snapshot, **how), ""
    except TransformerVizError as error:
        return None, str(error)


# ---- what differs


def _maps(comparison: Comparison, *, with_words: bool) -> Any:
    """Draws the boxes, the three maps, which are returned, and all heads' differences."""
    place.controls(comparison, with_words=with_words)
    _say_sizes(comparison)
    where = place.head_of_b(comparison)
    looks: Any = {"limit": _limit(comparison), **where}
    a, b, (kind, layer, head) = comparison.a, comparison.b, _focus()
    b_place = head_title(where.get("b_layer", layer), where.get("b_head", head))
    size_a, size_b = ("{} by {}".format(*run.attentions[kind].weights.shape[2:]) for run in (a, b))
    alt = (
        f"{KIND_TITLES[kind]}: A's {head_title(layer, head)}, {size_a}, B's {b_place}, {size_b}, and the difference A − B. "
        "The sentence and the table above say where it is largest."
    )
    with st.container(key="compare-maps"):
        looks |= {"key": "compare-chart", "words": alt, "file": "difference"}
        figure = chart.draw(figures.difference, a, b, kind, layer, head, **looks)
    term_tips.show(_legend(comparison))
    if any(len(comparison.layers(kind)) > deep_mosaic.LAYERS_A_PAGE for kind in comparison.kinds):
        _deep_mosaic(comparison)
        return figure
    for column, kind in zip(st.columns(len(comparison.kinds)), comparison.kinds, strict=True):
        with column:
            _mosaic(comparison, kind)
    return figure


def _mosaic(comparison: Comparison, kind: Kind, **some: Any) -> None:
    """Draws A − B of all heads of a kind, or of those of some layers."""
    state = st.session_state
    is_shown = kind == state.kind and not place.head_of_b(comparison)
    tile = (state.layer, state.head) if is_shown else None
    looks: Any = {"limit": _limit(comparison), "clicks": ("tile", partial(place.go_to_tile, comparison=comparison)), **some}
    alt = f"A − B of layers and heads of the {KIND_TITLES[kind]} that both have. The boxes above choose one."
    key = f"{player.MOSAIC_KEY}-{kind}"
    chart.draw(plain(difference_mosaic), comparison.a, comparison.b, kind, tile, key=key, words=alt, **looks)


def _deep_mosaic(comparison: Comparison) -> None:
    """Draws for the kind in focus how far each head differs, and beside it the six layers around the one that is shown."""
    kind, layer, head = _focus()
    layers = comparison.layers(kind)
    first = (layers.index(layer) if layer in layers else 0) // deep_mosaic.LAYERS_A_PAGE * deep_mosaic.LAYERS_A_PAGE
    left, right = st.columns([1, 3])
    with left:
        figure = tile_map(kind, layers, comparison.by_head(kind), "largest |A − B|", (layer, head), style.figure_style())
        words = f"The largest difference of every head of the {KIND_TITLES[kind]}"
        deep_mosaic.show_overview(figure, words, lambda tile: place.go_to_tile(tile, comparison))
    with right:
        n_heads = comparison.n_heads(kind)
        heads = [(number, head) for number in layers[first : first + deep_mosaic.LAYERS_A_PAGE] for head in range(n_heads)]
        _mosaic(comparison, kind, heads=heads, **deep_mosaic.room(len(heads), n_heads))


def _focus() -> tuple[Kind, int, Any]:
    state = st.session_state
    return state.kind, state.layer, state.head


def _limit(comparison: Comparison) -> float:
    """The size of a difference that has the strongest colour: 1, or the largest on the screen."""
    if st.session_state.scale == "fixed":
        return 1.0
    here = float(np.nanmax(np.abs(comparison.difference(*_focus(), **place.head_of_b(comparison))), initial=0.0))
    others = [abs(found.size) for kind in comparison.kinds if (found := comparison.farthest(kind))]
    return min(1.0, max([here, *others])) or 1.0


def _legend(comparison: Comparison) -> list[tuple[str, str]]:
    """What rows, columns and colours mean, and each pattern that is to be seen."""
    kind, layer, head = _focus()
    laid = comparison.one_head(kind, layer, head, **place.head_of_b(comparison))
    patterns = {
        "dotted: only one of them has the cell": laid.present != IN_BOTH,
        "hatched: masked": laid.masked == IN_BOTH,
        "crossed: masked in one alone": (laid.masked == IN_A) | (laid.masked == IN_B),
    }
    of_one = [words for words in legend(comparison.a, kind).split(" · ") if not words.startswith(("ring", "grey"))]
    marks = [": blue where A looks more, orange where B does", "framed: the largest difference of this map"]
    marks += [words for words, here in patterns.items() if here.any()]
    told = term_tips.mark(" · ".join([*of_one, ""]))
    return [*told, ("strong", "A − B"), *term_tips.mark(" · ".join(marks), told=("query", "key", "weight"))]


def _say_sizes(comparison: Comparison) -> None:
    """Draws how the sizes and kinds of both runs differ, and how their tokens are aligned."""
    kind: Kind = st.session_state.kind
    shapes = [run.attentions[kind].weights.shape[:2] for run in (comparison.a, comparison.b)]
    words = []
    if comparison.is_by_text:
        words.append("Words are aligned by their text, ignoring case; a word that only one run has is dotted.")
    elif comparison.a.source == comparison.b.source and tokens_read(comparison.a) != tokens_read(comparison.b):
        words.append(
            "A and B split the same text into different tokens: cells are aligned by position, and with *words* by the "
            "words' text."
        )
    if shapes[0] != shapes[1]:
        sizes = [f"{count_words(layers, 'layer')} of {count_words(heads, 'head')}" for layers, heads in shapes]
        words.append(
            f"A has {sizes[0]}, B {sizes[1]}. The small maps below show what both have; the boxes choose any head of A."
        )
    for name, run, other in (("A", comparison.a, comparison.b), ("B", comparison.b, comparison.a)):
        if only := [KIND_TITLES[one] for one in run.kinds if one not in other.kinds]:
            words.append(f"Only {name} has {' and '.join(only)}.")
    for name, run in (("A", comparison.a), ("B", comparison.b)):
        # Its own map, and the difference of it, look as if nothing had been done.
        words += [f"{name}: {head} is s{SWITCHED_OFF[1:]}" for head in heads_off_words(run)]
    if words:
        st.caption(" ".join(words))
