"""A beam search: its tree, its finished hypotheses, and which node is in focus. Search and Open both show it."""

from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.answer import hypothesis_answer
from transformer_viz.terms import visible_text
from transformer_viz.trace.search import STATE_WORDS, Search
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, clicks, figure_file, screen, style
from transformer_viz.views.components.markdown import of_run
from transformer_viz.views.state import display_options, link
from transformer_viz.views.state.display_options import DisplayOptions

_CHART, _TABLE = "search-tree", "hypotheses"


def start(search: Search, of: Hashable) -> int:
    """The node in focus, from the link or the best; `of` tells one search from another, which starts with its best."""
    state = st.session_state
    if state.get("chosen_in", of) != of:
        state.chosen_node = search.best[0]
    state.chosen_in = of
    return link.start("chosen_node", range(len(search.nodes)), search.best[0])


def show(trace: Trace, node: int, looks: DisplayOptions, *, greedy: Trace | None = None) -> None:
    """The tree; beside it the finished hypotheses, to choose one."""
    search = trace.search
    assert search is not None
    left, right = screen.columns([2.8, 1], "search")
    with left, st.container(key=_CHART):
        figure = figures.search_tree(
            trace, node, greedy=greedy, theme=style.theme(), large=looks.is_large, narrow=screen.is_narrow()
        )
        words = "The search tree; the table beside it names the finished hypotheses"
        heard = clicks.points(lambda number: _go_to(number, len(search.nodes)))
        chart.show(figure, "search-tree-chart", words, clicks=heard, painted=True)
    with right:
        _n_best(trace, node, large=looks.is_large)
        figure_file.offer(figure, "search-tree")


def say(shown: Trace, search: Search, node: int) -> None:
    """Which hypothesis is looked at, and how it ended."""
    st.markdown(
        f"**The hypothesis {of_run(shown.text)}**{display_options.answer_of(shown)}: {STATE_WORDS[search.nodes[node].state]}."
    )


def _n_best(trace: Trace, node: int, *, large: bool) -> None:
    """A table of the finished hypotheses and of the node in focus, whose rows choose one: a component of our own, since
    Streamlit's grid and a box to choose from take the browser a sixth of all its work on the page."""
    search = trace.search
    assert search is not None
    with_answer = display_options.current().with_answer
    answers = [hypothesis_answer(trace, number) if with_answer else None for number in search.best]
    numbers = [*search.best]
    if node not in search.best:
        numbers, answers = [*numbers, node], [*answers, None]
    # The text is last, since a long one would push the numbers out of sight.
    columns = ["rank", "score", "log p", "tokens", *(["answer"] if any(answers) else []), "text"]
    rows = []
    for rank, (number, answer) in enumerate(zip(numbers, answers, strict=True), start=1):
        at, text = search.nodes[number], visible_text(search.nodes[number].text) or "(empty)"
        scores = [f"{at.score:.3f}" if rank <= len(search.best) else "", f"{at.total:.3f}", str(at.step + 1)]
        place = str(rank) if rank <= len(search.best) else "–"
        cells = [place, *scores, *([answer or ""] if any(answers) else []), text]
        rows.append({"node": number, "name": f"{text} · {STATE_WORDS[at.state]}", "cells": cells})
    _component()(
        key=_TABLE,
        data={"columns": columns, "rows": rows, "node": node, "large": large},
        on_node_change=lambda: _go_to((st.session_state.get(_TABLE) or {}).get("node"), len(search.nodes)),
    )


def _go_to(number: Any, n_nodes: int) -> None:
    """To a node that the browser reports; what is none is passed over."""
    if isinstance(number, int) and 0 <= number < n_nodes:
        st.session_state.chosen_node = number


@cache
def _component() -> Any:
    """Registered once a process: the files are ours."""
    css, js = (Path(__file__).with_name(f"hypotheses.{ending}").read_text(encoding="utf-8") for ending in ("css", "js"))
    html = '<div class="hypotheses"></div>'
    return st.components.v2.component("transformer-viz-hypotheses", html=html, css=css, js=js)
