"""A few words about each option of a select box, below its name in the open list.

Streamlit writes the option's text, as `format_func` makes it, into the link and into the closed box. So the words below it are
not text of the option but its style's `content`, which is seen, and read aloud with the option.
"""

import re
from collections.abc import Sequence
from functools import cache

import streamlit as st

_LIST = '[role="listbox"][aria-label="{}"]'


def show(label: str, notes: Sequence[str]) -> None:
    """For the box of this label, on this page: a note for each of its options, in their order; "" where there is none."""
    st.html(f"<style>{_css(label, tuple(notes))}</style>")


@cache
def _css(label: str, notes: tuple[str, ...]) -> str:
    box = _LIST.format(_escaped(label))
    rules = (
        f'{box} [role="option"][data-key="{place}"] [data-item-hl]::after {{ content: "{_escaped(note)}"; }}'
        for place, note in enumerate(notes)
        if note
    )
    # A row is forty pixels high, whatever stands in it: of long lists Streamlit draws only the rows in sight.
    return f"""
[data-testid="stSelectboxVirtualDropdown"]:has(> {box}) {{ min-width: min(27rem, calc(100vw - 1.4rem)); }}
{box} [data-item-hl] {{ display: block; height: 2.4rem; padding-block: 0.1rem; line-height: 1.3; }}
{box} [data-item-hl]::after {{
  display: block; overflow: hidden; text-overflow: ellipsis; font-size: 0.8rem; line-height: 1.25; color: var(--muted);
}}
{" ".join(rules)}"""


def _escaped(text: str) -> str:
    """A text in a string of CSS; a name of a model may have any sign."""
    return re.sub(r"[^\w ,.-]", lambda found: f"\\{ord(found[0]):x} ", text)
