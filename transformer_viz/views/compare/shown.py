"""Draws the sentence and the table of the page Compare, and the strips of a patched run."""

from collections.abc import Callable
from typing import Any

from transformer_viz.comparison.compare import Comparison
from transformer_viz.language import say
from transformer_viz.sentences.compare_words import summary, table
from transformer_viz.viewer import modules
from transformer_viz.views.components import markup
from transformer_viz.views.components.style import theme
from transformer_viz.views.state import display_options


def show(content: dict[str, Any], on_kind: Callable[[Any], None] = lambda _: None, key: str = "compare-shown") -> None:
    """Draws a sentence, strips and a table.

    Args:
        content: `sentence`, `strips`, and `rows` with their `caption` and `columns`; each may be empty.
        on_kind: is called with the kind whose largest difference was chosen, as the browser says it.
        key: tells it from the page's others.
    """
    looks: Any = {"style": modules.styles("player.css", "lines.css")}
    looks |= {"large": display_options.current().is_large, "dark": theme() == "dark"}
    markup.show("compare/shown.html", key, on_kind, **looks, **content)


def sentence_of(comparison: Comparison) -> dict[str, Any]:
    """Says in a sentence what two runs have and have not in common."""
    return {"sentence": summary(comparison), "strips": [], "rows": []}


def table_of(comparison: Comparison) -> dict[str, Any]:
    """The table of what differs between two runs; on a projector it has the maps alone."""
    is_large = display_options.current().is_large
    rows = [
        {
            "what": row.what,
            "cells": [row.a, row.b, row.apart],
            "kind": row.kind,
            "is_text": row.what in (say("reads"), say("writes")),
        }
        for row in table(comparison)
        if row.kind is not None or not is_large
    ]
    columns = [say("what"), "A", "B", say("A against B")]
    return {"sentence": [], "strips": [], "caption": say("What differs"), "columns": columns, "rows": rows}
