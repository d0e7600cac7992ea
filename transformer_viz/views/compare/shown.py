"""Draws the sentence, the strips and the table of the page Compare."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from transformer_viz.analysis.compare_words import table, tokens_read, verdict
from transformer_viz.analysis.comparison import Comparison
from transformer_viz.analysis.word_pairs import pairs_that_differ
from transformer_viz.export.content import aligned
from transformer_viz.export.strips import output_strip, source_strip
from transformer_viz.terms import place_words
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace
from transformer_viz.viewer import modules
from transformer_viz.views.components import markup
from transformer_viz.views.components.style import theme
from transformer_viz.views.state import aligner, display_options


def show(content: dict[str, Any], on_kind: Callable[[Any], None] = lambda _: None, key: str = "compare-shown") -> None:
    """Draws a sentence, strips and a table.

    Args:
        content: `sentence`, `strips`, `rows` with their `caption` and `columns`, and `aligners`, as `of_both` returns them.
        on_kind: is called with the kind whose largest difference was chosen, as the browser says it.
        key: tells it from the page's others.
    """
    about = {"aligners": content.get("aligners")}
    looks: Any = {"style": modules.styles("player.css", "lines.css"), "script": _script(), "data": about}
    looks |= {"large": display_options.current().is_large, "dark": theme() == "dark"}
    markup.show("compare/shown.html", key, on_kind, **looks, **content)


@cache
def _script() -> str:
    own = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    return modules.script("aligned.js", "sentence.js") + own


def of_both(comparison: Comparison) -> dict[str, Any]:
    """What is shown of two runs; on a projector the table has the maps alone."""
    a, b, is_large = comparison.a, comparison.b, display_options.current().is_large
    rows = [
        {"what": row.what, "cells": [row.a, row.b, row.apart], "kind": row.kind, "is_text": row.what in ("reads", "writes")}
        for row in table(comparison)
        if row.kind is not None or not is_large
    ]
    strips = _strips({"A": a, "B": b})
    # Tokens of A and of B stand above each other where they are compared.
    of_strips = {"reads": (tokens_read(a), tokens_read(b)), "writes": (a.output_tokens, b.output_tokens)}
    for strip in strips:
        tokens = of_strips[strip["name"]]
        if all(tokens):
            pairs = comparison.paired(*tokens)
            strip["apart"] = pairs_that_differ(pairs, *tokens)
            for side, places in zip(strip["sides"], zip(*pairs, strict=True), strict=True):
                side["tokens"] = [None if place is None else side["tokens"][place] for place in places]
    return {
        "sentence": verdict(comparison),
        "strips": strips,
        "caption": "What differs",
        "columns": ["what", "A", "B", "A against B"],
        "rows": rows,
        "aligners": [aligned(run, aligner.known(run)) for run in (a, b)],
    }


def of_one(name: str, trace: Trace) -> dict[str, Any]:
    """What is shown where the other side could not be run."""
    words = [["strong", name], ["plain", " alone: there is nothing to compare it with yet."]]
    return {"sentence": words, "strips": _strips({name: trace}), "rows": []}


def _strips(runs: dict[str, Trace]) -> list[dict[str, Any]]:
    """What was read and what was written, a strip each, with the tokens of each side."""
    names = " and ".join(runs)
    # Of a run whose outputs are not recorded the strip has what its decoder read.
    is_known = all(run.output_tokens or not run.writes for run in runs.values())
    label = "writes, tinted by probability" if is_known else "writes, or has read where that is not recorded"
    found = []
    for strip, words, tokens_of, hint in (
        ("reads", "reads", lambda run: source_strip(run) or _prompt_strip(run), f"what {names} read, position by position"),
        ("writes", label, lambda run: output_strip(run) if run.writes else [], f"what {names} write, step by step"),
    ):
        sides = [
            {"name": name, "tokens": [{**token, "at": place} for place, token in enumerate(tokens_of(run))]}
            for name, run in runs.items()
        ]
        if any(side["tokens"] for side in sides):
            found.append({"name": strip, "label": words, "sides": sides, "apart": [], "hint": hint})
    # Of prompts alone the strip of what is written has every token.
    return found if any(run.source_tokens for run in runs.values()) else [strip for strip in found if strip["name"] == "writes"]


def _prompt_strip(run: Trace) -> list[dict[str, Any]]:
    """What a decoder without an encoder read of its text."""
    tokens = map(display_token, tokens_read(run))
    return [{"text": token, "title": f"{place_words(place)}: {token}", "class": "given"} for place, token in enumerate(tokens)]
