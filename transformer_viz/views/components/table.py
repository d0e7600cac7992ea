"""A table as the browser has tables: read aloud, sorted and gone through by keyboard; a row may have a button.

Streamlit draws its own on a canvas, where no key reaches a button.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz import glossary
from transformer_viz.analysis.sentences import percent_words

_FOLDER = Path(__file__).parent
NAME = "transformer-viz-table"


@dataclass(frozen=True)
class Cell:
    """What stands there, and the number or the text by which its column is sorted; None comes last."""

    text: str
    value: float | str | None


def words(text: str) -> Cell:
    """A cell of text."""
    return Cell(text, text)


def percent(share: float, places: int = 0) -> Cell:
    """`96 %`, with so many places behind the point."""
    return _or_nothing(share, lambda there: percent_words(there, places))


def number(value: float, places: int = 2) -> Cell:
    """With so many places behind the point; what rounds to nothing has no sign."""
    return _or_nothing(value, lambda there: f"{round(there, places) + 0.0:.{places}f}".replace("-", "−"))


def show(
    key: str,
    label: str,
    columns: Mapping[str, Sequence[Cell]],
    *,
    go: tuple[str, Sequence[bool]] | None = None,
    on_go: Callable[[int], None] | None = None,
    here: int | None = None,
) -> bool:
    """The table.

    Args:
        key: of the component.
        label: what it is a table of, for a screen reader.
        columns: cells by the columns' titles; the first names the rows.
        go: the title of the buttons' column, and which rows have one.
        on_go: is told the place of the row whose button was pressed.
        here: the row that is the one in focus.

    Returns:
        Whether a button was pressed just now, which may concern the whole page.
    """
    rows = list(zip(*columns.values(), strict=True))
    data = {
        "label": label,
        "columns": [_column(title, cells) for title, cells in columns.items()],
        "rows": [[{"text": cell.text, "value": cell.value} for cell in row] for row in rows],
        "go": go and {"title": go[0], "help": _help(go[0]), "rows": list(go[1])},
        "here": here,
    }

    def pressed() -> None:
        row = (st.session_state.get(key) or {}).get("go")
        if go and on_go and isinstance(row, int) and 0 <= row < len(go[1]) and go[1][row]:
            on_go(row)

    found = _component()(key=key, data=data, on_go_change=pressed)
    return found.get("go") is not None


def _column(title: str, cells: Sequence[Cell]) -> dict[str, Any]:
    is_number = not any(isinstance(cell.value, str) for cell in cells)
    return {"title": title, "help": _help(title), "isNumber": is_number}


def _help(title: str) -> str:
    return glossary.sentence(title) if title.lower() in glossary.TERMS else ""


def _or_nothing(value: float, written: Callable[[float], str]) -> Cell:
    return Cell("–", None) if math.isnan(value) else Cell(written(value), value)


@cache
def _component() -> Any:
    """Registered once a process: the files are ours, the cells come as data only."""
    css, js = ((_FOLDER / f"table.{ending}").read_text(encoding="utf-8") for ending in ("css", "js"))
    # It scrolls, so that the keyboard has to reach it.
    return st.components.v2.component(NAME, html='<div class="table" tabindex="0"></div>', css=css, js=js)
