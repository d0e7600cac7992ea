"""A beam search: its tree, its finished hypotheses, and which node is in focus. Search and Open both show it."""

from collections.abc import Hashable

import pandas as pd
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

_CHART = "search-tree"


def start(search: Search, of: Hashable) -> int:
    """The node in focus, from the link or the best; `of` tells one search from another, which starts with its best."""
    state = st.session_state
    if state.get("chosen_in", of) != of:
        state.chosen_node = search.best[0]
    state.chosen_in = of
    return link.start("chosen_node", range(len(search.nodes)), search.best[0])


def show(trace: Trace, node: int, looks: DisplayOptions, *, greedy: Trace | None = None) -> None:
    """The tree; beside it the finished hypotheses, and a box to choose one."""
    search = trace.search
    assert search is not None
    left, right = screen.columns([2.8, 1], "search")
    with left, st.container(key=_CHART):
        figure = figures.search_tree(
            trace, node, greedy=greedy, theme=style.theme(), large=looks.is_large, narrow=screen.is_narrow()
        )
        words = "The search tree; the table beside it and the box Hypothesis below name the finished hypotheses"
        heard = clicks.points(lambda number: _go_to(number, len(search.nodes)))
        chart.show(figure, "search-tree-chart", words, clicks=heard, painted=True)
    with right:
        _n_best(trace)
        _box(search, node)
        figure_file.offer(figure, "search-tree")


def say(shown: Trace, search: Search, node: int) -> None:
    """Which hypothesis is looked at, and how it ended."""
    st.markdown(
        f"**The hypothesis {of_run(shown.text)}**{display_options.answer_of(shown)}: {STATE_WORDS[search.nodes[node].state]}."
    )


def _n_best(trace: Trace) -> None:
    search = trace.search
    assert search is not None
    answers = [hypothesis_answer(trace, number) if display_options.current().with_answer else None for number in search.best]
    rows = []
    for rank, (number, answer) in enumerate(zip(search.best, answers, strict=True), start=1):
        node = search.nodes[number]
        right = {"answer": answer} if any(answers) else {}
        numbers = {"score": round(node.score, 3), "log p": round(node.total, 3), "tokens": node.step + 1}
        # Last, since a long text would push the numbers out of sight.
        rows.append({"rank": rank, **numbers, **right, "text": visible_text(node.text) or "(empty)"})
    st.dataframe(pd.DataFrame(rows), hide_index=True, height=min(330, 38 + 35 * len(rows)))


def _box(search: Search, node: int) -> None:
    """The keyboard's way to what a click on a node does."""
    numbers = [*search.best] if node in search.best else [*search.best, node]
    st.session_state.search_node = node
    st.selectbox(
        "Hypothesis",
        numbers,
        key="search_node",
        format_func=lambda number: (
            f"{visible_text(search.nodes[number].text) or '(empty)'} · {STATE_WORDS[search.nodes[number].state]}"
        ),
        on_change=lambda: _go_to(st.session_state.search_node, len(search.nodes)),
    )


def _go_to(number: int, n_nodes: int) -> None:
    if number < n_nodes:
        st.session_state.chosen_node = number
