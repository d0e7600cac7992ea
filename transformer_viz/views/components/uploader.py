"""A box to drop files into: each is read at once, its bytes are let go, and what became of it is said until the next one."""

from collections.abc import Callable

import streamlit as st

from transformer_viz.errors import TransformerVizError
from transformer_viz.language import say
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import visit_language

MB = 2**20


def box(label: str, key: str, sort: str, add: Callable[[str, bytes], object], *, most_bytes: int, most: int = 1) -> None:
    """Draws the box.

    Args:
        label: of the box.
        key: tells it from the page's others.
        sort: of files: their messages are said together.
        add: takes a file's name and bytes, and raises an error that is said.
        most_bytes: of a file, in whole MB.
        most: how many files at once.
    """
    # A box that has been read gives way to an empty one: Streamlit would keep the files' bytes beside what was read.
    widget = f"{key}_{st.session_state.setdefault(f'{key}_number', 0)}"
    st.file_uploader(
        label,
        accept_multiple_files=most > 1,
        key=widget,
        max_upload_size=most_bytes // MB,
        on_change=visit_language.spoken(_dropped),
        args=(key, widget, sort, add, most),
        help=say("They stay in this session and are never kept.")
        if most > 1
        else say("It stays in this session and is never kept."),
    )


def tell(sort: str) -> bool:
    """Draws the messages about the files of this sort. Gives whether there is an error among them."""
    said = st.session_state.get(f"{sort}_said", [])
    for is_error, words in said:
        (st.error if is_error else st.info)(literal(words), icon=":material/error:" if is_error else ":material/info:")
    return any(is_error for is_error, _ in said)


def note(sort: str, words: str, *, is_error: bool = True) -> None:
    """A message for `tell`; for a callback."""
    st.session_state.setdefault(f"{sort}_said", []).append((is_error, words))


def forget(sort: str) -> None:
    """No messages."""
    st.session_state[f"{sort}_said"] = []


def _dropped(key: str, widget: str, sort: str, add: Callable[[str, bytes], object], most: int) -> None:
    """Reads what was dropped, before the page is drawn."""
    state = st.session_state
    files = state.get(widget) or []
    files = files if isinstance(files, list) else [files]
    forget(sort)
    for file in files[:most]:
        try:
            add(file.name, file.getvalue())
        except TransformerVizError as error:
            note(sort, str(error))
    if len(files) > most:
        note(sort, say("{count} files are too many at once; the first {most} were read.", count=len(files), most=most))
    state[f"{key}_number"] += 1
