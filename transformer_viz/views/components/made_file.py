"""A file that is made, and the button that downloads it."""

from collections.abc import Callable, Hashable

import streamlit as st

from transformer_viz.errors import TransformerVizError
from transformer_viz.language import current, say
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.views.cache.store import store
from transformer_viz.views.components.markdown import literal


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
        with st.spinner(say("Making the file …")):
            data = store.get_or_make((of, current()), make)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    words = say("Download {name} ({size})", name=literal(name), size=bytes_words(len(data)))
    st.download_button(words, data, name, mime, key=key, icon=":material/download:", on_click="ignore")
