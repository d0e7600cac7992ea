"""Compare: two runs side by side, and every map with its signed difference."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.compare_words import tokens_read
from transformer_viz.analysis.comparison import IN_A, IN_B, IN_BOTH, Comparison, compare, of_b
from transformer_viz.export.strips import legend
from transformer_viz.figures.difference_mosaic import difference_mosaic
from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.mosaic import mosaic
from transformer_viz.figures.tiles import tile_map
from transformer_viz.numbers_in_words import count_words
from transformer_viz.terms import KIND_TITLES, Kind, head_title
from transformer_viz.trace.trace import Trace
from transformer_viz.views.compare import patching, place, shown, side_runs, sides
from transformer_viz.views.compare.sides import A, B
from transformer_viz.views.components import (
    bar,
    chart,
    clicks,
    code,
    deep_mosaic,
    figure_file,
    opened,
    player,
    screen,
    style,
    term_tips,
)
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call, call
from transformer_viz.views.state import deep, display_options, link, words

TITLE, ICON, ORDER = "Compare", ":material/compare:", 3


@dataclass(frozen=True)
class Example:
    """Two sides that are worth seeing, and the checkpoint without which they are not offered."""

    title: str
    needs: tuple[str, ...]
    a: dict[str, Any]
    b: dict[str, Any]


EXAMPLES = (
    Example(
        "The same day, written in two orders",
        ("dates",),
        {"text": "3 March 2024", "checkpoint": "dates"},
        {"text": "March 3 2024", "checkpoint": "dates"},
    ),
    Example(
        "After training and at its 141st step",
        ("reverse-small",),
        {"text": "reversethis", "checkpoint": "reverse-small"},
        {"text": "reversethis", "checkpoint": "reverse-small", "snapshot": 141, "strategy": "forced"},
    ),
    Example(
        "Two letters changed",
        ("reverse",),
        {"text": "reversethis", "checkpoint": "reverse"},
        {"text": "reversethat", "checkpoint": "reverse"},
    ),
    Example(
        "Greedy decoding and beam search",
        ("reverse-small",),
        {"text": "thisqaipa", "checkpoint": "reverse-small"},
        {"text": "thisqaipa", "checkpoint": "reverse-small", "strategy": "beam"},
    ),
    Example(
        "Two models of different size",
        ("reverse", "reverse-small"),
        {"text": "reversethis", "checkpoint": "reverse"},
        {"text": "reversethis", "checkpoint": "reverse-small"},
    ),
)


def show() -> None:
    """The page."""
    # The sides' boxes stand below the bar's, and are started by it.
    found: list[list[str]] = []
    chosen = bar.show("compare", with_models=True, instead=_common(found.append))
    if display_options.is_hidden("Two runs side by side"):
        return
    (usable,) = found
    # Both sides' boxes; below each what is wrong with it.
    for keys in (A, B):
        sides.start(keys, usable)
    columns = screen.columns(2, "sides")
    for keys, column in zip((A, B), columns, strict=True):
        with column:
            sides.show(keys, usable)
    ran = side_runs.both(sides.asked(A), sides.asked(B), chosen.device)
    for one, column in zip(ran, columns, strict=True):
        if one.error is not None:
            (column.info if one.is_empty else column.error)(literal(one.error), icon=":material/keyboard:")
    looks = {"large": chosen.is_large, "dark": style.theme() == "dark"}
    if ran[0].trace is None or ran[1].trace is None:
        _alone(ran, looks)
        return
    given = ran[0].trace, ran[1].trace
    comparison = compare(*words.together(*given))
    if not comparison.kinds:
        shown.show(shown.of_both(comparison, **looks))
        _say_nothing_in_common(comparison)
        return
    place.start(comparison)
    pair = patching.Pair(given, (sides.asked(A), sides.asked(B)), chosen.device)
    shown.show(shown.of_both(comparison, **looks), on_kind=lambda kind: place.go_to_farthest(kind, comparison))
    figure = _maps(comparison, with_words=words.is_offered(*given))
    patched = patching.show(pair, st.session_state.kind, large=chosen.is_large)
    if not chosen.is_large:
        where = {name: value for name, value in place.of_b().items() if value is not None}
        in_b = "".join(f", {name}={{}}" for name in where)
        difference = f"difference = {{}}.difference({{}}, {{}}, {{}}{in_b})"
        compared = Call(compare, comparison.a, comparison.b)
        code.show(*patched, Call(difference, compared, *_focus(), *where.values()), figure)


# ---- the two sides


def _common(found: Callable[[list[str]], None]) -> Callable[[list[str]], None]:
    """What stands in the bar in place of one text and one checkpoint."""

    def draw(usable: list[str]) -> None:
        found(usable)
        names = set(usable)
        with st.popover("Examples", icon=":material/lightbulb:", help="Pairs that are worth seeing"):
            for number, example in enumerate(EXAMPLES):
                if names.issuperset(example.needs):
                    st.button(example.title, key=f"pair-{number}", on_click=_put, args=(example,), width="stretch")
        st.button("Swap A and B", icon=":material/swap_horiz:", key="swap", on_click=sides.swap)
        with st.popover("Open files", icon=":material/folder_open:"):
            opened.box("compare-box")
            st.caption("An opened file can be chosen in the first box of A and of B.")
        st.space("stretch")

    return draw


def _put(example: Example) -> None:
    """Both sides of an example; the place is then where it differs most."""
    sides.put(A, example.a)
    sides.put(B, example.b)
    link.reset("kind", "layer", "head", "b_layer", "b_head")


# ---- what differs


def _maps(comparison: Comparison, *, with_words: bool) -> Any:
    """The boxes, the three maps, which are returned, and all heads' differences."""
    place.controls(comparison, with_words=with_words)
    _say_sizes(comparison)
    limit = _limit(comparison)
    looks: dict[str, Any] = {"limit": limit, "style": style.figure_style()}
    with st.container(key="compare-maps"):
        figure = call(figures.difference, comparison.a, comparison.b, *_focus(), **looks, **place.of_b())
        chart.show(figure, "compare-chart", _alt(comparison))
        figure_file.offer(figure, "difference")
    term_tips.show(_legend(comparison))
    if any(len(comparison.layers(kind)) > deep.LAYERS_A_PAGE for kind in comparison.kinds):
        _deep_mosaic(comparison, looks)
        return figure
    for column, kind in zip(st.columns(len(comparison.kinds)), comparison.kinds, strict=True):
        with column:
            _mosaic(comparison, kind, looks)
    return figure


def _mosaic(comparison: Comparison, kind: Kind, looks: dict[str, Any], **some: Any) -> None:
    """A − B of all heads of a kind, or of those of some layers."""
    tile = (st.session_state.layer, st.session_state.head) if kind == st.session_state.kind and place.is_same() else None
    words = f"A − B of layers and heads of the {KIND_TITLES[kind]} that both have. The boxes above choose one."
    heard = clicks.tiles(lambda tile: place.go_to_tile(tile, comparison))
    figure = plain(difference_mosaic)(comparison.a, comparison.b, kind, tile, **looks, **some)
    chart.show(figure, f"{player.MOSAIC_KEY}-{kind}", words, clicks=heard)


def _deep_mosaic(comparison: Comparison, looks: dict[str, Any]) -> None:
    """Of the kind in focus: how far each head of all differs, and beside it the six layers around the one that is shown."""
    kind, layer, head = _focus()
    layers = comparison.layers(kind)
    first = (layers.index(layer) if layer in layers else 0) // deep.LAYERS_A_PAGE * deep.LAYERS_A_PAGE
    left, right = st.columns([1, 3])
    with left:
        figure = tile_map(kind, layers, comparison.by_head(kind), "largest |A − B|", (layer, head), looks["style"])
        words = f"The largest difference of every head of the {KIND_TITLES[kind]}"
        deep_mosaic.show_overview(figure, words, lambda tile: place.go_to_tile(tile, comparison))
    with right:
        n_heads = comparison.n_heads(kind)
        heads = [(number, head) for number in layers[first : first + deep.LAYERS_A_PAGE] for head in range(n_heads)]
        _mosaic(comparison, kind, looks, heads=heads, **deep_mosaic.room(len(heads), n_heads))


def _focus() -> tuple[Kind, int, Any]:
    state = st.session_state
    return state.kind, state.layer, state.head


def _limit(comparison: Comparison) -> float:
    """The difference that has the strongest colour: 1, or the largest of the maps on the screen."""
    if st.session_state.scale == "fixed":
        return 1.0
    here = float(np.nanmax(np.abs(comparison.difference(*_focus(), **place.of_b())), initial=0.0))
    others = [abs(found.size) for kind in comparison.kinds if (found := comparison.farthest(kind))]
    return min(1.0, max([here, *others])) or 1.0


def _legend(comparison: Comparison) -> list[tuple[str, str]]:
    """What rows, columns, colours and those patterns mean that are to be seen."""
    kind, layer, head = _focus()
    laid = comparison.one_head(kind, layer, head, **place.of_b())
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


def _alt(comparison: Comparison) -> str:
    kind, layer, head = _focus()
    b_place = head_title(*of_b(layer, head, **place.of_b()))
    sizes = ["{} by {}".format(*run.attentions[kind].weights.shape[2:]) for run in (comparison.a, comparison.b)]
    return (
        f"{KIND_TITLES[kind]}: A's {head_title(layer, head)}, {sizes[0]}, B's {b_place}, {sizes[1]}, and the difference A − B. "
        "The sentence and the table above say where it is largest."
    )


def _say_sizes(comparison: Comparison) -> None:
    """Other numbers of layers or heads, and kinds that one alone has."""
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
            f"A has {sizes[0]}, B {sizes[1]}. The small maps below show what both have; the boxes choose any head of each."
        )
    for name, run, other in (("A", comparison.a, comparison.b), ("B", comparison.b, comparison.a)):
        if only := [KIND_TITLES[one] for one in run.kinds if one not in other.kinds]:
            words.append(f"Only {name} has {' and '.join(only)}.")
    if words:
        st.caption(" ".join(words))


def _say_nothing_in_common(comparison: Comparison) -> None:
    has = [" and ".join(KIND_TITLES[kind] for kind in run.kinds) or "none" for run in (comparison.a, comparison.b)]
    st.info(
        f"A and B have no kind of attention in common: A has {has[0]}, B has {has[1]}. Choose another run or file.",
        icon=":material/compare:",
    )


def _alone(ran: tuple[side_runs.Ran, side_runs.Ran], looks: dict[str, Any]) -> None:
    """The side that could be run, by itself."""
    for name, one in zip("AB", ran, strict=True):
        trace: Trace | None = one.trace
        if trace is None or not trace.kinds:
            continue
        state = st.session_state
        shown.show(shown.of_one(name, trace, **looks))
        kind: Kind = state.kind if state.get("kind") in trace.kinds else trace.kinds[-1]
        with st.container(key="compare-maps"):
            figure = plain(mosaic)(trace, kind, height=420, style=style.figure_style())
            words = f"All layers and heads of {name}'s {KIND_TITLES[kind]}"
            chart.show(figure, "compare-alone-chart", words)
