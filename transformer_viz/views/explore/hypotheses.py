"""A beam search on Explore, of a model or a file: its tree, its finished hypotheses, and the node in focus."""

import math
from collections.abc import Hashable
from functools import partial
from html import escape
from itertools import takewhile
from typing import Any

import streamlit as st

from transformer_viz import figures
from transformer_viz.comparison.compare import compare
from transformer_viz.language import known, say
from transformer_viz.numbers_in_words import rounded_words, times_words
from transformer_viz.sentences.correctness import hypothesis_answer
from transformer_viz.text_display import display_text
from transformer_viz.trace.search import STATE_WORDS, Search
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, screen, table
from transformer_viz.views.components.markdown import of_run
from transformer_viz.views.state import display_options, link

_LONGEST_TEXT, _KEPT = 20, 6
"""Characters of a hypothesis that its column shows, and those that stay of what all hypotheses begin with."""


def start(search: Search, of: Hashable) -> int:
    """The node in focus, from the link; the best one where that has none, or where the search, which `of` names, is another."""
    state, most = st.session_state, len(search.nodes)
    if state.setdefault("chosen_in", of) != of:
        state.chosen_in, state.node = of, ""

    def is_node(word: str) -> bool:
        return word.isascii() and word.isdigit() and len(word) < 10 and 0 < int(word) <= most

    node = link.hidden("node", is_node, say("1 to {most}", most=most))
    return int(node) - 1 if node else search.best[0]


def show(trace: Trace, search: Search, node: int, *, greedy: Trace | None = None) -> Any:
    """Draws the tree, which is returned, and beside it the finished hypotheses, to choose one."""
    with_answer, finished = display_options.current().with_answer, len(search.best)
    left, right = screen.columns([2, 1], "search")
    with left, st.container(key="search-tree"):
        words = say("The search tree; the table beside it names the finished hypotheses")
        heard = "point", partial(_go_to, search)
        looks: Any = {"key": "search-tree-chart", "words": words, "file": "search-tree", "clicks": heard}
        figure = chart.draw(figures.search_tree, trace, node, greedy=greedy, **looks)
    with right:
        # The finished hypotheses and the node in focus, to choose one.
        numbers = [*search.best, *([] if node in search.best else [node])]
        nodes = [search.nodes[number] for number in numbers]
        answers = [hypothesis_answer(trace, number) if with_answer else None for number in search.best]
        texts, n_same = [display_text(at.text) or say("(empty)") for at in nodes], 0
        if max(map(len, texts)) > _LONGEST_TEXT:
            # For a narrow column: without what all of them begin with.
            n_same = sum(1 for _ in takewhile(lambda signs: len({*signs}) == 1, zip(*texts, strict=False))) - _KEPT
        columns: dict[str, list[Any]] = {
            "rank": [str(rank) if rank <= finished else "–" for rank in range(1, len(nodes) + 1)],
            "text": [f"…{text[n_same:]}" for text in texts] if n_same > 0 else texts,
            "score": [at.score if rank < finished else math.nan for rank, at in enumerate(nodes)],
            "log p": [at.total for at in nodes],
            "tokens": [at.step + 1 for at in nodes],
        }
        if any(answers):
            columns["answer"] = [known(answer or "") for answer in answers] + [""] * (len(nodes) - finished)
        here = numbers.index(node)
        table.choose(
            columns, say("The finished hypotheses"), "hypotheses", here, lambda row: _go_to(search, numbers[row]), places=3
        )
    return figure


def show_covered(words: str) -> None:
    """Draws the place of the tree, which a question covers."""
    with st.container(key="search-tree-chart"):
        st.html(f'<div class="curtain-of-tree"><b aria-hidden="true">?</b><span>{escape(words)}</span></div>')


def tell(shown: Trace, search: Search, node: int) -> None:
    """Draws which hypothesis is looked at, and how it ended."""
    st.markdown(
        say(
            "**The hypothesis {text}**{shown}: {state_words}.",
            text=of_run(shown.text),
            shown=display_options.answer_of(shown),
            state_words=say(STATE_WORDS[search.nodes[node].state]),
        )
    )


def _go_to(search: Search, node: int) -> None:
    """To a node that the browser reports; what is none is passed over."""
    if node < len(search.nodes):
        st.session_state.node = str(node + 1)


def comparison(greedy: Trace, trace: Trace, search: Search) -> str:
    """Greedy decoding beside the search, in words."""
    best, size = search.nodes[search.best[0]], search.settings["beam_size"]
    by_greedy = math.fsum(step.log_probability for step in greedy.steps[greedy.n_given :])
    parted = compare(greedy, trace).parted
    texts = [f"**{of_run(run.text)}**{display_options.answer_of(run)}" for run in (greedy, trace)]
    if parted is None:
        return say(
            "Greedy decoding and beam {size} both write {texts}, log p = {total}.",
            size=size,
            texts=texts[0],
            total=rounded_words(best.total, 4),
        )
    gain = best.total - by_greedy
    more = times_words(gain) if gain > 0 else say("less probable, but better by its score")
    return say(
        "Greedy decoding writes {texts}, log p = {by_greedy}. Beam {size} finds {texts2}, log p = "
        "{total}: {more}. They diverge at step {parted}.",
        texts=texts[0],
        by_greedy=rounded_words(by_greedy, 4),
        size=size,
        texts2=texts[1],
        total=rounded_words(best.total, 4),
        more=more,
        parted=parted + 1,
    )
