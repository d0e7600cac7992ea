"""Keeps the garbage collector away from what is imported and stays.

Streamlit collects garbage after every run of a page, and looks at every object that the process holds: with torch, plotly
and pandas some 400,000, which takes 200 ms, in which the server sends nothing. Frozen, they are looked at no more.
"""

import gc
import sys

_n_modules = 0


def settle() -> None:
    """Freezes what is there, after the first run of a process and after each that imported something."""
    global _n_modules
    if len(sys.modules) == _n_modules:
        return
    _n_modules = len(sys.modules)
    gc.collect()
    gc.freeze()
