"""A page that ends early, as while a long run is waited for: what stands around it is drawn all the same."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

import streamlit as st


class EarlyEnd(BaseException):
    """On the way through what stands around a page. After Streamlit's own `StopException` nothing could be drawn there."""


def end_page() -> NoReturn:
    """Draws no more of the page."""
    raise EarlyEnd


@contextmanager
def stopped() -> Generator[None]:
    """Around a whole run: one whose page ended early is stopped at its end, and the widgets that it lacks keep their values."""
    try:
        yield
    except EarlyEnd:
        st.stop()
