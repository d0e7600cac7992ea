"""Draws the sentence, the strips and the table of the page Compare."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from transformer_viz.analysis.compare_words import table, tokens_read, verdict
from transformer_viz.analysis.comparison import Comparison
from transformer_viz.analysis.word_pairs import pairs_that_differ
from transformer_viz.export import assets
from transformer_viz.export.content import aligned
from transformer_viz.export.strips import output_strip, source_strip
from transformer_viz.terms import place_words
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import markup
from transformer_viz.views.state import aligner

_KEY = "compare-shown"


def show(content: dict[str, Any], on_kind: Callable[[Any], None] = lambda _: None, key: str = _KEY) -> None:
    """Draws it; `on_kind` gets the kind whose largest difference was chosen, as the browser says it."""
    about = {"aligners": content.get("aligners")}
    style = assets.script("player.css", "lines.css")
    markup.show("compare/shown.html", key, lambda kind, _: on_kind(kind), style=style, script=_script(), data=about, **content)


@cache
def _script() -> str:
    own = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    return assets.script("arrays.js", "aligned.js", "pieces.js") + own


def of_both(comparison: Comparison, *, large: bool, dark: bool) -> dict[str, Any]:
    """What it shows of two runs."""
    a, b = comparison.a, comparison.b
    rows = [
        {"what": row.what, "cells": [row.a, row.b, row.apart], "kind": row.kind, "is_text": row.what in ("reads", "writes")}
        for row in table(comparison)
        if row.kind is not None or not large
    ]
    sides = (("A", a), ("B", b))
    return {
        "sentence": verdict(comparison),
        "strips": _upon(comparison, _strips(sides)),
        "caption": "What differs",
        "columns": ["what", "A", "B", "A against B"],
        "rows": rows,
        "aligners": [aligned(run, aligner.known(run)) for run in (a, b)],
        "large": large,
        "dark": dark,
    }


def of_one(name: str, trace: Trace, *, large: bool, dark: bool) -> dict[str, Any]:
    """What it shows where the other side could not be run."""
    words = [["strong", name], ["plain", " alone: there is nothing to compare it with yet."]]
    return {"sentence": words, "strips": _strips(((name, trace),)), "rows": [], "large": large, "dark": dark}


def _upon(comparison: Comparison, strips: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Strips whose tokens of A and of B stand above each other where they are compared, and which of these are apart."""
    a, b = comparison.a, comparison.b
    of_strips = {"reads": (tokens_read(a), tokens_read(b)), "writes": (a.output_tokens, b.output_tokens)}
    for strip in strips:
        tokens = of_strips[strip["name"]]
        if not all(tokens):
            continue
        pairs = comparison.paired(*tokens)
        strip["apart"] = pairs_that_differ(pairs, *tokens)
        for side, places in zip(strip["sides"], zip(*pairs, strict=True), strict=True):
            side["tokens"] = [None if place is None else side["tokens"][place] for place in places]
    return strips


def _strips(sides: tuple[tuple[str, Trace], ...]) -> list[dict[str, Any]]:
    names = " and ".join(name for name, _ in sides)
    # Of prompts alone the strip below has every token.
    has_source = any(run.source_tokens for _, run in sides)
    reads = [{"name": name, "tokens": source_strip(run) or _prompt_strip(run) if has_source else []} for name, run in sides]
    writes = [{"name": name, "tokens": output_strip(run) if run.writes else []} for name, run in sides]
    is_known = all(run.output_tokens or not run.writes for _, run in sides)
    # Of a run whose outputs are not recorded the strip has what its decoder read.
    label = "writes, tinted by probability" if is_known else "writes, or has read where that is not recorded"
    found: list[dict[str, Any]] = [
        {"name": "reads", "label": "reads", "sides": reads, "apart": [], "hint": f"what {names} read, position by position"},
        {"name": "writes", "label": label, "sides": writes, "apart": [], "hint": f"what {names} write, step by step"},
    ]
    for strip in found:
        for side in strip["sides"]:
            side["tokens"] = [{**token, "at": place} for place, token in enumerate(side["tokens"])]
    return [strip for strip in found if any(side["tokens"] for side in strip["sides"])]


def _prompt_strip(run: Trace) -> list[dict[str, Any]]:
    """What a decoder without an encoder read of its text."""
    tokens = map(display_token, tokens_read(run))
    return [{"text": token, "title": f"{place_words(place)}: {token}", "class": "given"} for place, token in enumerate(tokens)]
