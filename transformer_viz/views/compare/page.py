"""Compare: two runs side by side, and every map with its signed difference."""

from functools import partial
from typing import Any

import streamlit as st

from transformer_viz.comparison.compare import Comparison, compare
from transformer_viz.errors import TransformerVizError
from transformer_viz.language import later, listed, say, sentences
from transformer_viz.numbers_in_words import count_words
from transformer_viz.sentences.compare_words import heads_off_words, tokens_read
from transformer_viz.terms import Kind, kind_words
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache import model_list, runs
from transformer_viz.views.compare import patching, picture, place, shown, sides
from transformer_viz.views.compare.sides import A, B
from transformer_viz.views.components import (
    bar,
    code,
    opened,
    screen,
    term_tips,
)
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.state import display_options, link, words
from transformer_viz.vocabulary import END

TITLE, ICON, ORDER = later("Compare"), ":material/compare:", 3
HAS_VIEWER = True
"""True for a page with a viewer, which writes its part of the address itself."""


EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    later("The same day, written in two orders"): (
        {"text": "3 March 2024", "checkpoint": "dates"},
        {"text": "March 3 2024", "checkpoint": "dates"},
    ),
    later("After training and at its 141st step"): (
        {"text": "reversethis", "checkpoint": "reverse-small"},
        {"text": "reversethis", "checkpoint": "reverse-small", "snapshot": 141, "strategy": "forced"},
    ),
    later("Two letters changed"): (
        {"text": "reversethis", "checkpoint": "reverse"},
        {"text": "reversethat", "checkpoint": "reverse"},
    ),
    later("Greedy decoding and beam search"): (
        {"text": "thisqaipa", "checkpoint": "reverse-small"},
        {"text": "thisqaipa", "checkpoint": "reverse-small", "strategy": "beam"},
    ),
    later("Two models of different size"): (
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
    if display_options.is_hidden(later("Two runs side by side")):
        return
    # Both sides' boxes; below each what is wrong with it.
    for keys in (A, B):
        sides.start(keys, usable)
    columns = screen.columns(2, "sides")
    for keys, column in zip((A, B), columns, strict=True):
        with column:
            sides.show(keys)
    requests = (sides.asked(A), sides.asked(B))
    (a, of_a), (b, of_b) = _run_sides(*requests, chosen.device)
    for side, error, column in zip(requests, (of_a, of_b), columns, strict=True):
        if error:
            # To have typed nothing is no mistake yet.
            (column.error if side.text else column.info)(literal(error), icon=":material/keyboard:")
    if a is None or b is None:
        # The side that could be run, by itself.
        for name, trace in (("A", a), ("B", b)):
            if trace is not None and trace.kinds:
                picture.show_one(name, trace, chosen)
        return
    comparison = compare(*words.together(a, b))
    if not comparison.kinds:
        shown.show(shown.sentence_of(comparison))
        shown.show(shown.table_of(comparison), key="compare-table")
        has = [listed(kind_words(kind) for kind in run.kinds) or say("none") for run in (comparison.a, comparison.b)]
        nothing = say(
            "A and B have no kind of attention in common: A has {has}, B has {has2}. Choose another run or file.",
            has=has[0],
            has2=has[1],
        )
        st.info(nothing, icon=":material/compare:")
        return
    place.start(comparison)
    shown.show(shown.sentence_of(comparison))
    _say_sizes(comparison)
    picture.show(comparison, chosen)
    place.controls(with_words=words.is_offered(a, b))
    term_tips.show(picture.legend(comparison))
    shown.show(shown.table_of(comparison), lambda kind: place.go_to_farthest(kind, comparison), "compare-table")
    patched = patching.show((a, b), requests, chosen.device, st.session_state.kind)
    if not chosen.is_large:
        where = place.head_of_b(comparison)
        in_b = "".join(f", {name}={{}}" for name in where)
        difference = f"difference = {{}}.difference({{}}{in_b})"
        compared = Call(compare, comparison.a, comparison.b)
        code.show(*patched, Call(difference, compared, place.focused(), *where.values()), picture.call(comparison))


# ---- the two sides


def _draw_in_bar(usable: list[str], names: list[str]) -> None:
    """Draws what stands in the bar in place of one text and one checkpoint, and notes which models there are."""
    usable += names
    with st.popover(say("Examples"), icon=":material/lightbulb:", help=say("Pairs that are worth seeing")):
        for number, (title, pair) in enumerate(EXAMPLES.items()):
            if {side["checkpoint"] for side in pair} <= {*names}:
                st.button(say(title), key=f"pair-{number}", on_click=_put, args=pair, width="stretch")
    st.button(say("Swap A and B"), icon=":material/swap_horiz:", key="swap", on_click=sides.swap)
    with st.popover(say("Open files"), icon=":material/folder_open:"):
        opened.box("compare-box")
        opened.tell()
        st.caption(say("An opened file can be chosen in the first box of A and of B."))
    st.space("stretch")


def _put(a: dict[str, Any], b: dict[str, Any]) -> None:
    """Fills both sides with an example; layer and head are then where it differs most."""
    sides.put({A: a, B: b})
    link.reset("kind", "layer", "head")


def _run_sides(a: sides.Asked, b: sides.Asked, device: str) -> tuple[tuple[Trace | None, str], tuple[Trace | None, str]]:
    """For each side its run, or None and why it has none; a side that reads the other one's output is run after it."""
    if a.reads_the_other and b.reads_the_other:
        nothing = None, say("Each side reads what the other one writes. Let one of them write by itself.")
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
                return None, say("This side reads what the other side writes, and the other side could not be run.")
            if not other.output_tokens:
                file = say("the other side's file does not say what was written")
                return None, say("This side reads what the other side writes, and {file}.", file=file)
            # Tokens without `<end>`; where they are a tokenizer's own matter, the text.
            tokens = tuple(token for token in other.output_tokens if token != END)
            how["target"] = other.text if model.task is None else tokens
        return runs.run(model, asked.text, asked.snapshot, **how), ""
    except TransformerVizError as error:
        return None, str(error)


def _say_sizes(comparison: Comparison) -> None:
    """Draws how the sizes and kinds of both runs differ, and how their tokens are aligned."""
    kind: Kind = st.session_state.kind
    shapes = [run.attentions[kind].weights.shape[:2] for run in (comparison.a, comparison.b)]
    words = []
    if comparison.is_by_text:
        words.append(say("Words are aligned by their text, ignoring case; a word that only one run has is dotted."))
    elif comparison.a.source == comparison.b.source and tokens_read(comparison.a) != tokens_read(comparison.b):
        words.append(
            say(
                "A and B split the same text into different tokens: cells are aligned by position, and with "
                "*words* by the words' text."
            )
        )
    if shapes[0] != shapes[1]:
        sizes = [
            say("{layers} of {heads}", layers=count_words(layers, "layer"), heads=count_words(heads, "head"))
            for layers, heads in shapes
        ]
        words.append(
            say(
                "A has {sizes}, B {sizes2}. The small maps below show what both have; the boxes choose any head of A.",
                sizes=sizes[0],
                sizes2=sizes[1],
            )
        )
    for name, run, other in (("A", comparison.a, comparison.b), ("B", comparison.b, comparison.a)):
        if only := [kind_words(one) for one in run.kinds if one not in other.kinds]:
            words.append(say("Only {name} has {kinds}.", name=name, kinds=listed(only)))
    for name, run in (("A", comparison.a), ("B", comparison.b)):
        # Its own map, and the difference of it, look as if nothing had been done.
        words += [
            say("{name}: {head} is switched off: its output is 0; its weights are computed as before.", name=name, head=head)
            for head in heads_off_words(run)
        ]
    if words:
        st.caption(sentences(words))
