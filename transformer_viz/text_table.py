"""A table for a terminal."""

import math
from collections.abc import Iterable, Sequence

from transformer_viz.numbers_in_words import number_words


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]], align: str = "<>") -> str:
    """Columns as wide as their widest cell.

    Args:
        header: what each column is called.
        rows: one cell a column.
        align: `<` or `>` for each column, on the left or on the right; the last one holds for the others too.
    """
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = align.ljust(len(widths), align[-1])
    return "\n".join("  ".join(map("{:{}{}}".format, line, sides, widths)).rstrip() for line in lines)


def number_cell(value: float | None, places: int = 3) -> str:
    """A number in a table: its minus is the one that people type; `-` for none."""
    return "-" if value is None or math.isnan(value) else number_words(value, places).replace("−", "-")
