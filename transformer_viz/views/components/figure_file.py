"""“Export the picture”: any figure of any page as a file. Made when it is asked for, since a picture takes seconds."""

import hashlib
from collections.abc import Callable, Hashable
from typing import Any

import streamlit as st

from transformer_viz import export
from transformer_viz.errors import TransformerVizError
from transformer_viz.figures.figure_data import PlainFigure
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.views.cache.store import store
from transformer_viz.views.components.markdown import literal

FORMATS = {
    "html": ("Page", "text/html"),
    "svg": ("SVG", "image/svg+xml"),
    "png": ("PNG", "image/png"),
    "pdf": ("PDF", "application/pdf"),
}


def offer(figure: Any, name: str) -> None:
    """A fold with the formats; `name` is the file's, without ending, and tells this figure from the page's others."""
    state, asked = st.session_state, f"picture_asked_{name}"
    if state.get("projector"):
        return
    with st.popover("Export the picture", icon=":material/image:", type="tertiary"):
        st.caption("The figure above as it stands. A page needs no network; the others take some seconds.")
        with st.container(horizontal=True):
            for format, (words, _) in FORMATS.items():
                st.button(words, key=f"picture-{name}-{format}", on_click=state.update, kwargs={asked: format})
        if (chosen := state.get(asked)) is None:
            return
        of = ("picture", chosen, name, hashlib.sha256(figure.to_json().encode()).hexdigest())

        def make() -> bytes:
            if chosen == "html":
                return export.figure_html(figure, title=name).encode()
            return export.picture(figure.to_plotly() if isinstance(figure, PlainFigure) else figure, chosen)

        download(f"{name}.{chosen}", FORMATS[chosen][1], f"picture-{name}-file", of, make)


def download(name: str, mime: str, key: str, of: Hashable, make: Callable[[], bytes]) -> None:
    """Makes a file's bytes, once for all visitors, and draws the button that downloads them; or why they cannot be made.

    Args:
        name: the file's.
        mime: its type.
        key: the button's.
        of: tells this content from all others.
        make: returns it.
    """
    try:
        with st.spinner("Making the file …"):
            data = store.get_or_make(of, make)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    words = f"Download {literal(name)} ({bytes_words(len(data))})"
    st.download_button(words, data, name, mime, key=key, icon=":material/download:", on_click="ignore")
