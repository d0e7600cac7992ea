"""The tab Export: the run as a page, a picture or data, and the lines of Python that make the pictures and the file again."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from transformer_viz.addresses import AttentionAddress
from transformer_viz.errors import TransformerVizError
from transformer_viz.export import packed_heads, saving
from transformer_viz.export.saving import file_name
from transformer_viz.language import ENGLISH, current, later, say
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.terms import head_title, kind_words, place_words
from transformer_viz.trace import limits
from transformer_viz.trace.limits import n_weights
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache.computing import compute
from transformer_viz.views.components import code, made_file, pictures, style
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import aligner, display_options, focus, link

if TYPE_CHECKING:
    from transformer_viz.checkpoints import Checkpoint

TITLE, ORDER = later("Export"), 4

_FORMATS = {
    "html": (
        later("Page"),
        "text/html",
        later("The whole run in one file: step it, choose any head. Needs no network and nothing installed."),
    ),
    "live": (
        later("Live page"),
        "text/html",
        later("The model itself in one file: whoever opens it types a text and sees every head of it. Needs no network."),
    ),
    "png": ("PNG", "image/png", later("The focus map and the candidates of this step, 2400 pixels wide.")),
    "svg": ("SVG", "image/svg+xml", later("The same as vectors, for slides and papers.")),
    "pdf": ("PDF", "application/pdf", later("The same as one PDF page.")),
}
_DATA = {
    "npz": (
        later("Trace"),
        "application/octet-stream",
        later("The run itself, with the whole tree of a search; *a trace file …* and tv.load_trace read it without the model."),
    ),
    "csv": ("CSV", "text/csv", later("Every weight of every head as a row; numbers count from 0.")),
    "parquet": (
        later("Parquet"),
        "application/vnd.apache.parquet",
        later("The same rows, typed and compressed; pandas and others read it."),
    ),
    "focus": (later("CSV of the focus"), "text/csv", later("The rows of the head or the layer in focus alone.")),
}


def show(shown: Shown) -> None:
    """Draws the formats of pages and pictures, the menu *Data*, the download that is chosen in each, and the code."""
    trace, at = shown.trace, focus.current()
    looks: dict[str, Any] = {"theme": style.theme(), "large": bool(st.session_state.get("projector"))}
    with_answer = not st.session_state.get("hide_answer")
    names = {name: words for name, (words, *_) in _FORMATS.items()}
    with st.container(horizontal=True, vertical_alignment="center"):
        chosen = link.segmented_control(say("File"), names, key="export_format", label_visibility="collapsed")
        with st.popover(say("Data"), icon=":material/table:"):
            data = _offer_data(shown, at)
    st.caption(say(_FORMATS[chosen][2]))
    if chosen == "live":
        saved = _offer_model(shown.checkpoint, trace.source, looks)
    else:
        looks["with_answer"] = with_answer
        if chosen == "html" and (found := aligner.current(trace)) is not None:
            looks["aligner"] = f"cross.{found.address}"
        saved = _offer_run(trace, chosen, at, looks)
    # The lines of a picture would tell what a row that is hidden looks at.
    calls = pictures.picture_calls(trace, display_options.current(), at, shown.measured) if with_answer else []
    tree = [] if shown.tree is None else [shown.tree]
    code.show(*tree, *calls, *filter(None, (saved, data)), key="code_of_tab")


def _take_step() -> None:
    """Draws a button that draws this tab again, at the step that the player has reached since."""
    st.button(say("Take the player's step"), icon=":material/refresh:", key="export-refresh", type="tertiary")


def _offer_run(trace: Trace, chosen: str, at: focus.Focus, looks: dict[str, Any]) -> Call:
    """Offers the run as a page or a picture. Returns the call that saves it."""
    view = at.view
    name = file_name(trace, chosen, view)
    options = {"head": view.address, "step": view.step, **looks, **_language()}
    with st.container(horizontal=True, vertical_alignment="center"):
        if chosen == "html" and packed_heads.is_large(trace):
            # Some heads are packed to know it.
            size = compute(say("How large its page is"), n_weights(trace), packed_heads.estimated_size, trace)
            st.text(say("its heads, rounded to 16 bits, take about {size}", size=bytes_words(size)))
        if chosen != "html" or _may_be_made(trace, is_table=False):
            make = partial(saving.render_bytes, trace, chosen, **options)
            _download((at.run, chosen, tuple(options.items())), name, _FORMATS[chosen][1], make)
        _take_step()
        words = say(
            "{kind}, {head}, {place}",
            kind=kind_words(view.kind),
            head=head_title(view.layer, view.head),
            place=say("step {step}", step=view.step + 1) if trace.writes else place_words(view.step),
        )
        st.text(say("on the screen: {words}", words=words))
    return Call(saving.save, trace, name, **options)


def _offer_data(shown: Shown, at: focus.Focus) -> Call | None:
    """Offers the run as data, in the format whose button was pressed. Returns the call that saves it."""
    state, trace, view = st.session_state, shown.trace, at.view
    for name, (words, _, about) in _DATA.items():
        st.button(say(words), f"data-{name}", say(about), state.update, kwargs={"data_asked": (at.run, name)}, width="stretch")
    run, chosen = state.get("data_asked", ("", ""))
    if run != at.run:
        return None
    file: str = "attention-focus.csv" if chosen == "focus" else file_name(trace, chosen, view)
    place: Hashable = (at.run, chosen, tuple(trace.attributions))
    if chosen == "npz":
        trace = shown.whole or shown.tokens
        call, make = Call(saving.save, trace, file), partial(saving.render_bytes, trace, chosen)
        place = (*place, tuple(trace.attributions))
    elif not _may_be_made(trace, is_table=True):
        return None
    elif chosen == "focus":
        of = str(AttentionAddress(view.kind, view.layer, view.head if isinstance(view.head, int) else None))
        call = Call("{}.to_csv({}, index=False)", Call(Trace.to_frame, trace, of), file)
        place, make = (*place, of), lambda: trace.to_frame(of).to_csv(index=False).encode()
    else:
        call, make = Call(saving.save, trace, file), partial(saving.render_bytes, trace, chosen)
    made_file.download(file, _DATA[chosen][1], "data-download", ("file", place), make)
    return call


def _may_be_made(trace: Trace, *, is_table: bool) -> bool:
    """Tells whether every weight may be written as text, about a hundred bytes for one; where it may not, says why."""
    try:
        limits.check_file(trace, say("This run"), is_table=is_table)
    except TransformerVizError as error:
        st.caption(
            say("{error} Or take the trace, then `python -m transformer_viz render … --no-limits`.", error=literal(str(error)))
        )
        return False
    return True


def _offer_model(checkpoint: "Checkpoint | None", source: str, looks: dict[str, Any]) -> Call | None:
    """Offers a page with the model in it, which opens with the text that is shown. Returns the call that saves it."""
    if checkpoint is None:
        st.caption(say("One of this program's own models can be in such a page; this is another model, or a run from a file."))
        return None
    # Here, because a file is looked at where there is no torch.
    from transformer_viz.live.page import live_html, live_page
    from transformer_viz.views.cache.model_list import identity

    looks = {**looks, **_language()}
    # A snapshot is named after its model.
    step = "" if checkpoint.snapshot is None else f"-step{checkpoint.snapshot}"
    name, place = f"live-{checkpoint.name}{step}.html", (identity(checkpoint), "live", source, tuple(looks.items()))
    _download(place, name, _FORMATS["live"][1], lambda: live_html(checkpoint, source, **looks).encode())
    return Call(live_page, checkpoint, name, source, **looks)


def _language() -> dict[str, Any]:
    """The keyword of what is made for whoever looks; none for English."""
    return {} if current() == ENGLISH else {"language": current()}


def _download(place: Hashable, name: str, kind: str, make: Callable[[], bytes]) -> None:
    """Draws a button that makes a file, which takes seconds, and then the one that downloads it.

    Args:
        place: tells this file from all others.
        name: the file's.
        kind: its MIME type.
        make: returns its bytes.
    """
    state = st.session_state
    # The click's own run already knows a step that the player has reached since the button was drawn.
    if state.pop("export_wanted", False):
        state.export_asked = place
    if state.get("export_asked") != place:
        wanted: Any = {"on_click": state.update, "kwargs": {"export_wanted": True}}
        st.button(say("Prepare the file"), icon=":material/build:", key="export-prepare", **wanted)
        return
    made_file.download(name, kind, "export-download", ("file", place), make)
