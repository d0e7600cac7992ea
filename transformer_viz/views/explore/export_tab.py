"""The tab Export: the run as a page, a picture, a table or a trace, and the lines of Python that make the pictures again."""

import math
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from transformer_viz.analysis.sentences import step_name
from transformer_viz.errors import TransformerVizError
from transformer_viz.export import saving
from transformer_viz.export.saving import file_name
from transformer_viz.terms import KIND_TITLES, head_title
from transformer_viz.text_display import display_text
from transformer_viz.trace import limits
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import code, made_file, pictures, recorded_calls, style
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import aligner, display_options, focus, link

if TYPE_CHECKING:
    from transformer_viz.checkpoints import Checkpoint

TITLE, ORDER = "Export", 4

_FORMATS = {
    "html": (
        "Page",
        "text/html",
        "The whole run in one file: step it, choose any head. Needs no network and nothing installed.",
    ),
    "live": (
        "Live page",
        "text/html",
        "The model itself in one file: whoever opens it types a text and sees every head of it. Needs no network.",
    ),
    "png": ("PNG", "image/png", "The focus map and the candidates of this step, 2400 pixels wide."),
    "svg": ("SVG", "image/svg+xml", "The same as vectors, for slides and papers."),
    "pdf": ("PDF", "application/pdf", "The same as one PDF page."),
    "table": ("Table", "", "The weights of the focus, to sort and to search."),
    "csv": ("CSV", "text/csv", "Every weight of every head as a row; numbers count from 0."),
    "parquet": ("Parquet", "application/vnd.apache.parquet", "The same rows, typed and compressed; pandas and others read it."),
    "npz": (
        "Trace",
        "application/octet-stream",
        "The run itself, with the whole tree of a search; *a trace file …* and tv.load_trace read it without the model.",
    ),
    "code": ("Code", "", "The lines of Python that make the pictures above."),
}
_MOST_AT_ONCE = 200_000
"""Weights up to which a table is made without being asked for."""
_OF_EVERYTHING = ("html", "csv", "parquet")
"""Files with every weight: as text, a weight takes about a hundred bytes while it is made."""
_MOST_ROWS, _MOST_OF_A_LAYER = 20_000, 300_000
"""Rows of the table that are shown, and weights of all heads of a layer up to which they are shown together."""


def show(shown: Shown) -> None:
    """Draws the formats and, for the one that is chosen, its download, its table or its code."""
    trace, at = shown.trace, focus.current()
    looks: dict[str, Any] = {"theme": style.theme(), "large": bool(st.session_state.get("projector"))}
    names = {name: words for name, (words, *_) in _FORMATS.items()}
    chosen = link.segmented_control("File", names, key="export_format", label_visibility="collapsed")
    st.caption(_FORMATS[chosen][2])
    if chosen == "live":
        _offer_model(shown.checkpoint, trace.source, looks)
    elif chosen == "table":
        if not display_options.is_hidden("The weights of all steps"):
            _show_weights(trace)
    elif chosen == "code":
        if not display_options.is_hidden("The lines that make the pictures"):
            calls = pictures.picture_calls(trace, display_options.current(), at, shown.measured)
            st.code(recorded_calls.program(*([] if shown.tree is None else [shown.tree]), *calls), language="python")
            _take_step()
    else:
        looks["with_answer"] = not st.session_state.get("hide_answer")
        if (scale := display_options.scale()) != "fixed":
            looks["colours"] = scale
        if chosen == "html" and (found := aligner.current(trace)) is not None:
            looks["aligner"] = found.address
        _offer_run(shown, chosen, at, looks)


def _take_step() -> None:
    """Draws a button that draws this tab again, at the step that the player has reached since."""
    st.button("Take the player's step", icon=":material/refresh:", key="export-refresh", type="tertiary")


def _offer_run(shown: Shown, chosen: str, at: focus.Focus, looks: dict[str, Any]) -> None:
    """Offers the run as a file, and shows the line that saves it."""
    trace, view = (shown.whole or shown.tokens) if chosen == "npz" else shown.trace, at.view
    is_table, name = chosen in saving.TABLE_FORMATS, file_name(trace, chosen, view)
    options = {} if is_table else {"kind": view.kind, "layer": view.layer, "head": view.head, "step": view.step, **looks}
    place = (at.run, chosen, tuple(trace.attributions) if is_table else tuple(options.items()))
    with st.container(horizontal=True, vertical_alignment="center"):
        try:
            if chosen in _OF_EVERYTHING:
                limits.check_file(trace, "This run", is_table=is_table)
        except TransformerVizError as error:
            st.caption(f"{literal(str(error))} Or take the trace, then `python -m transformer_viz render … --no-limits`.")
        else:
            is_quick = is_table and limits.n_weights(trace) <= _MOST_AT_ONCE
            make = partial(saving.render_bytes, trace, chosen, **options)
            _download(place, name, _FORMATS[chosen][1], make, is_quick=is_quick)
        _take_step()
        words = f"{KIND_TITLES[view.kind]}, {head_title(view.layer, view.head)}, {step_name(shown.trace)} {view.step + 1}"
        st.text(f"on the screen: {words}")
    code.show(Call(saving.save, trace, name, **options), key="code_of_tab")


def _offer_model(checkpoint: "Checkpoint | None", source: str, looks: dict[str, Any]) -> None:
    """Offers a page with the model in it, which opens with the text that is shown."""
    if checkpoint is None:
        st.caption("One of this program's own models can be in such a page; this is another model, or a run from a file.")
        return
    # Here, because a file is looked at where there is no torch.
    from transformer_viz.live.page import live, live_html
    from transformer_viz.views.cache.model_list import identity

    # A snapshot is named after its model.
    step = "" if checkpoint.snapshot is None else f"-step{checkpoint.snapshot}"
    name, place = f"live-{checkpoint.name}{step}.html", (identity(checkpoint), "live", source, tuple(looks.items()))
    _download(place, name, _FORMATS["live"][1], lambda: live_html(checkpoint, source, **looks).encode(), is_quick=False)
    code.show(Call(live, checkpoint, name, source, **looks), key="code_of_tab")


def _download(place: Hashable, name: str, kind: str, make: Callable[[], bytes], *, is_quick: bool) -> None:
    """Draws a download button; what takes seconds or megabytes is made when another button asks for it.

    Args:
        place: tells this file from all others.
        name: the file's.
        kind: its MIME type.
        make: returns its bytes.
        is_quick: whether it is made without being asked for.
    """
    state = st.session_state
    # The click's own run already knows a step that the player has reached since the button was drawn.
    if state.pop("export_wanted", False):
        state.export_asked = place
    if not is_quick and state.get("export_asked") != place:
        wanted: Any = {"on_click": state.update, "kwargs": {"export_wanted": True}}
        st.button("Prepare the file", icon=":material/build:", key="export-prepare", **wanted)
        return
    made_file.download(name, kind, "export-download", ("file", place), make)


def _show_weights(trace: Trace) -> None:
    """Draws the weights of the head or layer in focus as a table, with its download and its code."""
    state, attention = st.session_state, trace.attentions[st.session_state.kind]
    head = state.head if isinstance(state.head, int) else None
    if head is None and math.prod(attention.weights.shape[1:]) > _MOST_OF_A_LAYER:
        st.caption("All heads of this layer are too many numbers for a table; choose one head above.")
    else:
        frame = trace.to_frame(state.kind, state.layer, head)
        st.caption("The weights of the focus, one per row. Layers, heads and tokens count from 1 here, from 0 in the CSV.")
        rows = frame.head(_MOST_ROWS)
        counted = {name: rows[name] + 1 for name in ("layer", "head", "query", "key")}
        tokens = {name: rows[name].map(display_text) for name in ("query_token", "key_token")}
        # A weight of 8e-31 would be written with all its zeros.
        floats = frame.select_dtypes("floating").columns
        digits: Any = {name: st.column_config.NumberColumn(format="%.4g") for name in floats}
        st.dataframe(rows.assign(**counted, **tokens), height=320, hide_index=True, column_config=digits)
        st.download_button("CSV of the focus", frame.to_csv(index=False).encode(), "attention-focus.csv", "text/csv")
    everything = Call(Trace.to_frame, trace)
    table = Call("table = {0}[({0}.kind == {1}) & ({0}.layer == {2})]", everything, state.kind, state.layer)
    if head is not None:
        table = Call('table = {0}[{0}["head"] == {1}]', table, head)
    code.show(table, key="code_of_tab")
