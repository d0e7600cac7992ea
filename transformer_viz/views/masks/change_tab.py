"""Change a mask, a head or a row of weights, and see what the model makes of it."""

import pandas as pd
import streamlit as st

from transformer_viz import edits as plain_edits
from transformer_viz import figures
from transformer_viz.analysis.compare_words import change_words
from transformer_viz.analysis.comparison import compare
from transformer_viz.edits import Edit, Flip, Force, HeadOff, MaskOff, Place
from transformer_viz.errors import OptionError
from transformer_viz.terms import KIND_TITLES, Kind, head_label, visible
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, clicks, code, figure_file, jump
from transformer_viz.views.components.markdown import of_run
from transformer_viz.views.masks import batch_runs
from transformer_viz.views.masks.setup import Setup, reset
from transformer_viz.views.snippets import masks as programs
from transformer_viz.views.state import display_options, focus, link, on_demand
from transformer_viz.views.state.controls import CLICKS, MOST_OF_EDITS, REACHES

TITLE, ORDER = "Change and run again", 2

_CHART = "lab-edit"
_REACHES, _CLICKS = tuple(REACHES.values()), tuple(CLICKS.values())


def show(setup: Setup) -> None:
    """Controls and the mask to click on the left, the outcome on the right, the maps below."""
    before, after = setup.decoded(changed=False)[setup.sentence], setup.decoded(changed=True)[setup.sentence]
    focus.controls(after, with_best=False)
    left, right = st.columns([5, 7])
    with left:
        _controls(setup, after)
    with right:
        _outcome(setup, before, after)
        _over_many(setup)
        _steps(before, after)
    state = st.session_state
    figure = figures.before_and_after(
        before, after, state.kind, state.layer, state.head, theme=setup.theme, large=setup.is_large, columns=setup.columns
    )
    words = f"{KIND_TITLES[state.kind]} of the focus head before and after the change, and the signed difference"
    chart.show(figure, "lab-before-after", words)
    figure_file.offer(figure, "change")
    at, height = programs.Focus(setup.sentence, state.kind, state.layer, state.head), _height(after, state.kind)
    with_effect = on_demand.is_asked("effect", setup.made_of)
    code.show(programs.change(setup.batch, at, height, setup.columns, setup.looks, with_effect=with_effect))


def _controls(setup: Setup, after: Trace) -> None:
    state = st.session_state
    kind: Kind = state.kind
    layer, head = state.layer, state.head if isinstance(state.head, int) else 0
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox("A click on the mask", _CLICKS, key="lab_click", width=230)
        st.selectbox("and reaches", _REACHES, key="lab_reach", width=190)
    _switches(kind, layer, head)
    st.text_input(
        "Edits as text",
        key="lab_edits",
        max_chars=MOST_OF_EDITS,
        placeholder="cross:3-5, decoder:off, cross.2.4:zero, cross.1.1:3=5",
        help="kind:query-key flips a cell, 3-\\* a row, \\*-5 a column; kind:off turns the mask off; kind.layer.head:zero "
        "switches a head off; kind.layer.head:3=5 forces row 3 onto key 5. An edit holds for every sentence of the batch.",
    )
    _mask(setup, after, kind, layer, head)


def _switches(kind: Kind, layer: int, head: int) -> None:
    """What one press changes for all rows: the kind's mask, or a head."""
    title = head_label(layer, head)
    with st.container(horizontal=True):
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
            st.button(label, icon=f":material/{icon}:", on_click=_toggle, args=(edit,), help=words)


def _mask(setup: Setup, after: Trace, kind: Kind, layer: int, head: int) -> None:
    """The mask as it is now, to be clicked."""
    figure = figures.mask(
        after,
        kind,
        layer,
        head,
        theme=setup.theme,
        height=_height(after, kind),
        # Of the sound model: one for all layers and heads.
        before=setup.decoded(changed=False)[setup.sentence].masks[kind],
    )
    with st.container(key=_CHART):
        heard = clicks.cells(lambda query, key: _clicked(query, key, after))
        chart.show(figure, "lab-edit-chart", "The mask; the field below edits it by text", clicks=heard)
        figure_file.offer(figure, "mask")


def _height(trace: Trace, kind: Kind) -> int:
    return min(560, 170 + 30 * len(trace.queries(kind)))


def _outcome(setup: Setup, before: Trace, after: Trace) -> None:
    if not setup.is_changed:
        st.info(
            "Nothing is changed yet. Click a cell of the mask, or a label for its row or column.", icon=":material/touch_app:"
        )
        return
    comparison = compare(before, after)
    parted, largest = comparison.parted, comparison.largest
    words = "The output is the same" if parted is None else f"The output changes from step {parted + 1} on"
    st.markdown(f"**{words}.** {_text_words(before, after)}")
    if largest is None:
        st.markdown("No weight changes.")
    else:
        jump.to_largest(comparison, f"The largest change of a weight: {change_words(largest)}.", "change-largest")
    with st.container(horizontal=True):
        st.button("Reset", icon=":material/restart_alt:", type="primary", on_click=reset, key="lab-reset")
        st.download_button(
            "This run as a file", to_bytes(after), "edited.npz", "application/octet-stream", icon=":material/download:"
        )
    if words := link.too_long({"the edits": st.session_state.lab_edits}):
        st.warning(f"{words} The file has them.", icon=":material/link_off:")


def _text_words(before: Trace, after: Trace) -> str:
    text = f"**{of_run(after.text)}**{display_options.answer_of(after)}"
    if before.text == after.text and before.finished == after.finished:
        return f"It is {text}."
    stopped = ", which the limit stopped" if after.finished == "length" else ""
    return f"**{of_run(before.text)}** has become {text}{stopped}."


def _steps(before: Trace, after: Trace) -> None:
    n = max(len(before.steps), len(after.steps))
    rows = []
    for t in range(n):
        a, b = (run.steps[t] if t < len(run.steps) else None for run in (before, after))
        rows.append(
            {
                "step": t + 1,
                "before": visible(a.token) if a else "",
                "p before": a.probability if a else None,
                "after": visible(b.token) if b else "",
                "p after": b.probability if b else None,
                "compared": "differs" if (a and a.token) != (b and b.token) else "",
            }
        )
    bar = {
        name: st.column_config.ProgressColumn(name, min_value=0.0, max_value=1.0, format="%.4f")
        for name in ("p before", "p after")
    }
    st.dataframe(pd.DataFrame(rows), hide_index=True, column_config=bar, height=min(440, 38 + 35 * n))


def _over_many(setup: Setup) -> None:
    """Only when asked: it decodes a thousand strings."""
    if not setup.is_changed:
        return
    if st.button("The effect over 500 strings", icon=":material/query_stats:", key="lab-many"):
        on_demand.ask("effect", setup.made_of)
    if on_demand.is_asked("effect", setup.made_of):
        found = batch_runs.over_many(setup.checkpoint, setup.edits, setup.mistake)
        st.markdown(
            f"Over {found.samples} fresh strings of all lengths, in padded batches: exact match "
            f"**{found.exact_before:.3f} → {found.exact_after:.3f}**; {found.changed:.1%} of the outputs changed."
        )


def _clicked(query: int | None, key: int | None, trace: Trace) -> None:
    """A click on a cell, or on the label of a row or column."""
    state = st.session_state
    kind: Kind = state.kind
    if (query is not None and query >= len(trace.queries(kind))) or (key is not None and key >= len(trace.keys(kind))):
        return
    what = state.get("lab_click", _CLICKS[0])
    if query is None or key is None:
        _toggle(Flip(_reach(), query, key))
    elif what == _CLICKS[3]:
        _toggle(Force(_reach(), query, ((key, 1.0),)))
    else:
        row, column = what != _CLICKS[2], what != _CLICKS[1]
        _toggle(Flip(_reach(), query if row else None, key if column else None))


def _reach() -> Place:
    state = st.session_state
    head = state.head if isinstance(state.head, int) else 0
    places = {
        _REACHES[0]: Place(state.kind),
        _REACHES[1]: Place(state.kind, state.layer),
        _REACHES[2]: Place(state.kind, state.layer, head),
    }
    return places[state.get("lab_reach", _REACHES[0])]


def _toggle(edit: Edit) -> None:
    """Adds an edit; the same one a second time takes it back."""
    try:
        known = list(plain_edits.parse(st.session_state.lab_edits))
    except OptionError:
        known = []
    if edit in known:
        known.remove(edit)
    else:
        if isinstance(edit, Force):
            known = [e for e in known if not (isinstance(e, Force) and (e.place, e.query) == (edit.place, edit.query))]
        known.append(edit)
    st.session_state.lab_edits = ", ".join(map(str, known[: plain_edits.MOST_EDITS]))
