"""The tab Export: the run as a page, a picture, a table or a trace, and the lines of Python that make the pictures again."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import streamlit as st

from transformer_viz.analysis.sentences import step_name
from transformer_viz.errors import TransformerVizError
from transformer_viz.export import saving
from transformer_viz.export.content import View
from transformer_viz.export.saving import file_name
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.terms import KIND_TITLES, head_title
from transformer_viz.trace import limits
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache.store import store
from transformer_viz.views.components import code, recorded_calls, stepper
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.explore import weights_table
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


def show(shown: Shown) -> None:
    """The formats, a button that makes what takes time, and the code."""
    trace, theme = shown.trace, shown.theme
    at = focus.current()
    now = at.view
    looks = {
        "theme": theme,
        "large": bool(st.session_state.get("projector")),
        "with_answer": not st.session_state.get("hide_answer"),
        **({} if (scale := display_options.scale()) == "fixed" else {"colours": scale}),
    }
    names: Any = {"words": lambda name: _FORMATS[name][0], "label_visibility": "collapsed"}
    chosen = link.segmented_control("File", list(_FORMATS), key="export_format", **names)
    if chosen == "html" and (found := aligner.current(trace)) is not None:
        looks["aligner"] = found.address
    st.caption(_FORMATS[chosen][2])
    if chosen == "live":
        _offer_model(shown.checkpoint, trace.source, {name: looks[name] for name in ("theme", "large")})
        return
    if chosen == "table":
        if not display_options.is_hidden("The weights of all steps"):
            weights_table.show(trace)
        return
    if chosen == "code":
        if not display_options.is_hidden("The lines that make the pictures"):
            pictures = stepper.picture_calls(shown.trace, display_options.current(), at, shown.measured)
            st.code(recorded_calls.program(*([] if shown.tree is None else [shown.tree]), *pictures), language="python")
            _take_step()
        return
    saved = (shown.whole or shown.tokens) if chosen == "npz" else trace
    with st.container(horizontal=True, vertical_alignment="center"):
        _offer(saved, at.run, chosen, now, looks)
        _take_step()
        st.text(f"on the screen: {KIND_TITLES[now.kind]}, {head_title(now.layer, now.head)}, {step_name(trace)} {now.step + 1}")
    is_table = chosen in saving.TABLE_FORMATS
    options = {} if is_table else {"kind": now.kind, "layer": now.layer, "head": now.head, "step": now.step, **looks}
    code.show(Call(saving.save, saved, file_name(trace, chosen, now), **options), key="code_of_tab")


def _take_step() -> None:
    """This tab is drawn once; the player goes on without it."""
    st.button("Take the player's step", icon=":material/refresh:", key="export-refresh", type="tertiary")


def _offer(trace: Trace, run: str, chosen: str, now: View, looks: dict[str, Any]) -> None:
    """Download buttons take bytes: what takes seconds or megabytes is made when it is asked for."""
    is_table = chosen in saving.TABLE_FORMATS
    place = (run, chosen, tuple(trace.attributions)) if is_table else (run, chosen, now, tuple(looks.items()))
    if chosen in _OF_EVERYTHING:
        try:
            limits.check_file(trace, "This run", is_table=is_table)
        except TransformerVizError as error:
            st.caption(f"{literal(str(error))} Or take the trace, then `python -m transformer_viz render … --no-limits`.")
            return
    is_quick = is_table and limits.n_weights(trace) <= _MOST_AT_ONCE
    name = file_name(trace, chosen, now)
    _download(place, name, _FORMATS[chosen][1], lambda: _made(chosen, trace, now, looks), is_quick=is_quick)


def _offer_model(checkpoint: "Checkpoint | None", source: str, looks: dict[str, Any]) -> None:
    """A page with the model in it, which opens with the text that is shown."""
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
    # The click's own run already knows a step that the player has reached since the button was drawn.
    if st.session_state.pop("export_wanted", False):
        st.session_state.export_asked = place
    if not is_quick and st.session_state.get("export_asked") != place:
        st.button("Prepare the file", icon=":material/build:", key="export-prepare", on_click=_want)
        return
    try:
        with st.spinner("Making the file …"):
            data = store.get_or_make(("file", place), make)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    words = f"Download {literal(name)} ({bytes_words(len(data))})"
    st.download_button(words, data, name, kind, icon=":material/download:", key="export-download", on_click="ignore")


def _want() -> None:
    st.session_state.export_wanted = True


def _made(chosen: str, trace: Trace, now: View, looks: dict[str, Any]) -> bytes:
    """The file's bytes."""
    if chosen in saving.TABLE_FORMATS:
        return saving.render_bytes(trace, chosen)
    return saving.render_bytes(trace, chosen, kind=now.kind, layer=now.layer, head=now.head, step=now.step, **looks)
