"""Change a mask, a head or a row of weights, and see what the model makes of it."""

from typing import Any

import pandas as pd
import streamlit as st

from transformer_viz import edits as plain_edits
from transformer_viz import figures
from transformer_viz.addresses import Place
from transformer_viz.analysis.compare_words import change_words, fills_words
from transformer_viz.analysis.comparison import compare
from transformer_viz.edits import Edit, Flip, Force, HeadOff, MaskOff
from transformer_viz.errors import OptionError
from transformer_viz.figures.attention import SWITCHED_OFF
from transformer_viz.mask_checks.effect import SAMPLES, effect
from transformer_viz.terms import KIND_TITLES, Kind, head_label, place_words
from transformer_viz.text_display import display_token
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import bar, chart, clicks, code, figure_file, jump, style
from transformer_viz.views.components.markdown import of_run
from transformer_viz.views.components.recorded_calls import Call, call, record
from transformer_viz.views.masks import batch_runs
from transformer_viz.views.masks.over_many import OverMany
from transformer_viz.views.masks.setup import MOST_OF_EDITS, Setup
from transformer_viz.views.state import focus, link

TITLE, ORDER = "Change and run again", 2

_CHART = "lab-edit"
_ON_SCREEN, _HIGHEST = 395, 560
"""Pixels of the mask: what a window of 900 has left below the controls, and what more rows may take to stay legible."""
_TO_LARGEST = "lab_to_largest"
"""In the session, until the page has run: a head was switched off, whose own map does not change."""
_CLICKS = ("flips the cell", "flips the row", "flips the column", "forces the row onto the key")
_REACHES = ("all layers and heads", "this layer", "this head")


def has_focus(setup: Setup) -> bool:
    """Whether it shows boxes for the focus."""
    return True


def show(setup: Setup) -> None:
    """What is changed, and beside it, on a phone below it, what that does; further down both runs, step by step."""
    before, after = setup.decoded(changed=False)[setup.sentence], setup.decoded(changed=True)[setup.sentence]
    if st.session_state.pop(_TO_LARGEST, False) and (largest := compare(before, after).largest) is not None:
        focus.go_to_head(largest.kind, largest.layer, largest.head)
    many = OverMany("effect", setup, {"effect": (setup.edits, setup.mistake)})
    with st.container(horizontal=True, key="change-controls"):
        focus.controls(after, with_best=False)
        _switches()
    # Two columns again in each row: the mask's rows stand beside those of what it changes, and below them on a phone.
    cause, result = st.columns(2)
    with cause, st.container(horizontal=True):
        for label, options, key, words in (
            ("A click on the mask", _CLICKS, "click", "a click {}"),
            ("and reaches", _REACHES, "reach", "in {}"),
        ):
            link.selectbox(label, options, key=key, words=words.format, width=230, label_visibility="collapsed")
    with result:
        _outcome(setup, before, after)
    cause, result = st.columns(2)
    with cause:
        kind, layer, head = _one_head()
        # Of the sound model: one for all layers and heads.
        sound = record(before.attentions[kind].mask, Call("{}.attentions[{}].mask", before, kind))
        looks: Any = {"height": _height(after, kind), "before": sound, "style": style.figure_style()}
        mask = call(figures.mask, after, kind, layer, head, **looks)
        with st.container(key=_CHART):
            heard = clicks.cells(lambda query, key: _clicked(query, key, after))
            chart.show(mask, "lab-edit-chart", "The mask; the field below edits it by text", clicks=heard)
            figure_file.offer(mask, "mask")
    with result:
        change = _difference(before, after)
    cause, result = st.columns(2)
    with cause:
        link.text_input(
            "Edits as text",
            key="edits",
            most=MOST_OF_EDITS,
            placeholder="cross:3-5, decoder:off, cross.2.4:zero, cross.1.1:3=5",
            help="kind:query-key flips a cell, 3-\\* a row, \\*-5 a column; kind:off turns the mask off; kind.layer.head:zero "
            "switches a head off; kind.layer.head:3=5 forces row 3 onto key 5. An edit holds for every sentence of the batch.",
        )
    with result:
        _further(setup, after, many)
    both = _both_runs(before, after)
    _steps(before, after)
    said = Call("print({0}.text, {1}.text, {2}.largest)", before, after, Call(compare, before, after))
    code.show(said, mask, change, *both, *([Call("print({})", _effect_call(setup))] if many.is_asked else []))
    many.go_on()


def _switches() -> None:
    """What one press changes for all rows: the kind's mask, or a head."""
    kind, layer, head = _one_head()
    title = head_label(layer, head)
    with st.container(horizontal=True, width="content"):
        for label, icon, edit, words in (
            ("Mask off", "grid_off", MaskOff(Place(kind)), f"Nothing is masked in the {KIND_TITLES[kind]}"),
            (f"{title} off", "visibility_off", HeadOff(Place(kind, layer, head)), "This head's output becomes zeros"),
            (
                f"{title} uniform",
                "density_small",
                Force(Place(kind, layer, head), None, ()),
                "Every row of this head spreads its weight uniformly",
            ),
        ):
            st.button(label, icon=f":material/{icon}:", on_click=_switch, args=(edit,), help=words)


def _switch(edit: Edit) -> None:
    _toggle(edit)
    st.session_state[_TO_LARGEST] = isinstance(edit, HeadOff) and edit in plain_edits.parse(st.session_state.edits)


def _effect_call(setup: Setup) -> Call:
    """The effect over many texts, which is computed a few at a time, in one go."""
    change: Any = {"edits": setup.edits, "mistake": setup.mistake}
    if setup.many is None:
        return Call(effect, setup.model, **change)
    return Call(effect, setup.model, [*setup.many], max_length=batch_runs.most_written(setup.model), **change)


def _difference(before: Trace, after: Trace) -> Any:
    state = st.session_state
    place = (state.kind, state.layer, state.head)
    figure = call(figures.change, before, after, *place, height=_height(after, state.kind), style=style.figure_style())
    words = f"{KIND_TITLES[state.kind]} of the focus head, after the change minus before it"
    chart.show(figure, "lab-change", words)
    figure_file.offer(figure, "change")
    return figure


def _further(setup: Setup, after: Trace, many: OverMany) -> None:
    """The run as a file, and the same change over many strings."""
    if not setup.is_changed:
        return
    if setup.many is None:
        words = f"The effect over {SAMPLES} strings"
    else:
        link.text_area(
            "The effect over many texts, one a line",
            key="many",
            most=bar.MOST_TYPED,
            height=90,
            placeholder="Empty: the texts above",
            help=f"At most {batch_runs.MOST_WRITTEN} tokens are written for each; edits count from a text's own first token.",
        )
        words = f"The effect over {len(setup.many)} texts"
    many.controls(words)
    many.result("effect")
    st.download_button(
        "This run as a file", to_bytes(after), "edited.npz", "application/octet-stream", icon=":material/download:"
    )


def _both_runs(before: Trace, after: Trace) -> list[Any]:
    state, maps = st.session_state, []
    for place, name, run in zip(st.columns(2), ("before", "after"), (before, after), strict=True):
        with place:
            figure = call(figures.attention, run, state.kind, state.layer, state.head, style=style.figure_style())
            maps.append(figure)
            st.markdown(f"**{name.capitalize()}**")
            chart.show(figure, f"lab-{name}", f"{KIND_TITLES[state.kind]} of the focus head, {name} the change")
            figure_file.offer(figure, name)
    return maps


def _one_head() -> tuple[Kind, int, int]:
    """The focus; the first head where several are shown together."""
    state = st.session_state
    return state.kind, state.layer, state.head if isinstance(state.head, int) else 0


def _height(trace: Trace, kind: Kind) -> int:
    n_rows = len(trace.attentions[kind].queries)
    return max(min(_ON_SCREEN, 170 + 30 * n_rows), min(_HIGHEST, 170 + 12 * n_rows))


def _outcome(setup: Setup, before: Trace, after: Trace) -> None:
    if not setup.is_changed:
        st.info(
            "Nothing is changed yet. Click a cell of the mask, or a label for its row or column.", icon=":material/touch_app:"
        )
        return
    comparison = compare(before, after)
    with st.container(gap="xxsmall"):
        for edit in plain_edits.read(setup.edits):
            if isinstance(edit, HeadOff):
                # What switching off means, and the way back: the focus may be elsewhere by now.
                kind, layer, head = edit.place.kind, edit.place.layer, edit.place.head
                name = (
                    str(edit.place)
                    if layer is None or head is None
                    else f"{head_label(layer, head)} of the {KIND_TITLES[kind]}"
                )
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.markdown(f"**{name}**: {SWITCHED_OFF[0].lower()}{SWITCHED_OFF[1:]}", width="content")
                    st.button("On again", f"on-{edit}", on_click=_toggle, args=(edit,), icon=":material/undo:", type="tertiary")
        st.markdown(_output_words(before, after, comparison.parted) if after.n_steps else _fill_words(before, after))
        if comparison.largest is None:
            st.markdown("No weight changes.")
        else:
            words = f"Largest change: {change_words(comparison.largest)}."
            jump.to_largest(comparison, words, "change-largest")


def _output_words(before: Trace, after: Trace, parted: int | None) -> str:
    if parted is None:
        return "**The output is the same.**"
    texts = [f"**{of_run(run.text)}**" for run in (before, after)]
    stopped = ", which the limit stopped" if after.finished == "length" else ""
    return f"**The output changes from step {parted + 1} on.** {texts[0]} has become {texts[1]}{stopped}."


def _fill_words(before: Trace, after: Trace) -> str:
    """Of a model that writes nothing: what it puts at its mask tokens."""
    if not before.fills:
        return "**This model writes nothing**; its weights change."
    first, second = map(fills_words, (before, after))
    if first == second:
        return "**What it puts at its mask tokens is the same.**"
    return f"**What it puts at its mask tokens changes.** **{of_run(first)}** has become **{of_run(second)}**."


def _steps(before: Trace, after: Trace) -> None:
    """What was written step by step, or what stands at the mask tokens."""
    if not after.n_steps:
        _fills(before, after)
        return
    rows = []
    for t in range(after.n_given, max(len(before.steps), len(after.steps))):
        a, b = (run.steps[t] if t < len(run.steps) else None for run in (before, after))
        rows.append(
            {
                "step": t + 1,
                "before": display_token(a.token) if a else "",
                "p before": a.probability if a else None,
                "after": display_token(b.token) if b else "",
                "p after": b.probability if b else None,
                "compared": "differs" if (a and a.token) != (b and b.token) else "",
            }
        )
    _table(rows)


def _fills(before: Trace, after: Trace) -> None:
    rows = []
    for a, b in zip(before.fills, after.fills, strict=True):
        (first, p_before), (second, p_after) = a.candidates[0], b.candidates[0]
        rows.append(
            {
                "place": place_words(a.place),
                "before": display_token(first),
                "p before": p_before,
                "after": display_token(second),
                "p after": p_after,
                "compared": "differs" if first != second else "",
            }
        )
    if rows:
        _table(rows)


def _table(rows: list[dict[str, Any]]) -> None:
    bars = {
        name: st.column_config.ProgressColumn(name, min_value=0.0, max_value=1.0, format="%.4f")
        for name in ("p before", "p after")
    }
    st.dataframe(pd.DataFrame(rows), hide_index=True, column_config=bars)


def _clicked(query: int | None, key: int | None, trace: Trace) -> None:
    """A click on a cell, or on the label of a row or column."""
    state = st.session_state
    kind: Kind = state.kind
    attention = trace.attentions[kind]
    if (query is not None and query >= len(attention.queries)) or (key is not None and key >= len(attention.keys)):
        return
    what = state.get("click", _CLICKS[0])
    if query is None or key is None:
        _toggle(Flip(_reach(), query, key))
    elif what == _CLICKS[3]:
        _toggle(Force(_reach(), query, ((key, 1.0),)))
    else:
        row, column = what != _CLICKS[2], what != _CLICKS[1]
        _toggle(Flip(_reach(), query if row else None, key if column else None))


def _reach() -> Place:
    kind, layer, head = _one_head()
    places = {_REACHES[0]: Place(kind), _REACHES[1]: Place(kind, layer), _REACHES[2]: Place(kind, layer, head)}
    return places[st.session_state.get("reach", _REACHES[0])]


def _toggle(edit: Edit) -> None:
    """Adds an edit; the same one a second time takes it back."""
    try:
        known = list(plain_edits.parse(st.session_state.edits))
    except OptionError:
        known = []
    if edit in known:
        known.remove(edit)
    else:
        if isinstance(edit, Force):
            known = [e for e in known if not (isinstance(e, Force) and (e.place, e.query) == (edit.place, edit.query))]
        known.append(edit)
    st.session_state.edits = ", ".join(map(str, known[: plain_edits.MOST_EDITS]))
