"""The limit on the size of a run on the pages, and the smaller runs that are offered instead of one that is too large."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from transformer_viz.errors import OptionError, TraceTooLarge
from transformer_viz.language import enumerated, listed, say
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.terms import KINDS, kind_words
from transformer_viz.trace.limits import MAX_TRACE_BYTES
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.recording_options import RecordingKeywords, check_recording
from transformer_viz.views.state import link

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

HALF = "half"
_MOST_OFFERED = 3
R = TypeVar("R")


def within(checkpoint: "LoadedModel", make: Callable[..., R]) -> R:
    """`make` with everything kept; where that is too large, with the keywords of `decode` that the person has chosen.

    Raises:
        TraceTooLarge: everything is too large, and nothing is chosen or that is too large as well.
    """
    try:
        return make()
    except TraceTooLarge:
        # From the link or by a button.
        if kept := _read(checkpoint, st.session_state.get("keep", "")):
            with suppress(TraceTooLarge):
                return make(**kept)
        raise


def refuse(error: TraceTooLarge) -> None:
    """Says what is too large, and has a button for each choice that is not."""
    needed, allowed = bytes_words(error.needed), bytes_words(error.allowed)
    words = (
        say("Everything of this run would take up to {needed}; the page allows {allowed}.", needed=needed, allowed=allowed)
        if error.needed > error.allowed
        else say("Everything of this run would take up to {needed}, and more to make it.", needed=needed)
    )
    if not error.offers:
        st.warning(say("{why} Shorten the text.", why=words), icon=":material/memory:")
        return
    st.warning(say("{why} Shorten the text, or keep a part:", why=words), icon=":material/memory:")
    with st.container(horizontal=True, key="keep-offers"):
        for options, n_bytes in error.offers[:_MOST_OFFERED]:
            text = written(options)
            title = f"{words_of(options)} ({bytes_words(n_bytes)})"
            st.button(title, key=f"keep-{text}", on_click=_choose, args=(text,), icon=":material/compress:")


def caption(trace: Trace) -> None:
    """Says what the run takes, quietly; and where only a part is kept, which, with a way back to the choice."""
    # Here, because a file is looked at where there is no torch.
    from transformer_viz.tracing.trace_size import bytes_of

    size, most, part = bytes_words(bytes_of(trace)), bytes_words(MAX_TRACE_BYTES), words_of(trace.made_by)
    st.caption(
        say("this trace: {size} of at most {most}; kept: {part}", size=size, most=most, part=part)
        if part
        else say("this trace: {size} of at most {most}", size=size, most=most)
    )
    if part:
        st.button(say("Choose again"), key="keep-again", on_click=_choose, args=("",), type="tertiary", icon=":material/undo:")


def written(options: Any) -> str:
    """`cross,half,2`: kinds, half precision and layers, counted from 1."""
    parts = [*options.get("kinds", ()), *([HALF] if options.get("precision") == "float16" else [])]
    return ",".join([*parts, *(str(layer + 1) for layer in options.get("layers", ()))])


def words_of(options: Any) -> str:
    """`cross-attention, layers 1 and 2, in half precision`; nothing where everything is kept."""
    parts = [kind_words(kind) for kind in options.get("kinds", ())]
    parts = [say("only {kinds}", kinds=listed(parts))] if parts else []
    layers = [str(layer + 1) for layer in options.get("layers", ())]
    if layers:
        some = listed(layers)
        parts.append(say("layer {layer}", layer=some) if len(layers) == 1 else say("layers {layers}", layers=some))
    return enumerated([*parts, *([say("half precision")] if options.get("precision") == "float16" else [])])


def hidden_choice(checkpoint: "LoadedModel") -> None:
    """Keeps in the link what was chosen; what this checkpoint does not have is said once and forgotten."""
    allowed = say("{kinds}, {half}, and layers that this model has", kinds=", ".join(KINDS), half=HALF)
    link.hidden("keep", lambda text: _read(checkpoint, text) is not None, allowed)


def _read(checkpoint: "LoadedModel", text: str) -> RecordingKeywords | None:
    """Keywords of `decode`; None where this checkpoint does not have it."""
    parts = text.split(",")
    numbers = [int(part) - 1 for part in parts if part.isascii() and part.isdigit() and len(part) < 5]
    kinds = [part for part in parts if part not in (HALF, "") and not part.isdigit()]
    options: RecordingKeywords = {"precision": "float16"} if HALF in parts else {}
    options |= {"kinds": tuple(kinds)} if kinds else {}
    options |= {"layers": tuple(numbers)} if numbers else {}
    try:
        check_recording(checkpoint.network.sizes, **options)
    except OptionError:
        return None
    return options or None


def _choose(text: str) -> None:
    st.session_state.keep = text
