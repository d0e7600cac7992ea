"""Tokens of any length: what is drawn of them is cut, so that a file does not grow by their number times length."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.sentences import step_sentence
from transformer_viz import Trace, decode
from transformer_viz.comparison.diff import diff
from transformer_viz.export.drawings import WHATS, figure_of
from transformer_viz.export.pages import html
from transformer_viz.figures.theme import token_label
from transformer_viz.sentences.run_sentences import plain

N = 5


def run(length: int, **more: Any) -> Trace:
    """Five tokens of so many letters each; a wrong one is corrected in every sentence."""
    tokens = [chr(97 + i) * length for i in range(N)]
    weights = np.full((2, 3, N, N), 1 / N)
    candidates = [[(token, 0.5), (token + "x", 0.25)] for token in tokens]
    arrays: dict[str, Any] = {"encoder": weights, "decoder": weights, "cross": weights, "candidates": candidates}
    made = {"checkpoint": "c" * length, "device": "d" * length}
    return Trace.from_arrays(
        **arrays,
        source_tokens=tokens,
        target_tokens=tokens,
        output_tokens=tokens,
        made_by=made,
        masks={"decoder": None},
        **more,
    )


def test_a_page_of_endless_tokens_is_that_of_long_ones() -> None:
    assert html(run(200_000), plotlyjs=False) == html(run(1000), plotlyjs=False)


@pytest.mark.parametrize("what", [what for what in WHATS if what != "search"])
def test_so_is_every_figure(what: Any) -> None:
    long, endless = (figure_of(run(length), what, head="cross.1.1") for length in (1000, 100_000))
    assert long.to_json() == endless.to_json()


def test_so_is_the_tree_of_a_search(tiny: Any) -> None:
    trace = decode(tiny, "hello", strategy="beam", beam_size=2, max_length=3)
    assert trace.search is not None
    drawn = []
    for length in (1000, 100_000):
        nodes = tuple(replace(node, token="t" * length, text="u" * length) for node in trace.search.nodes)
        drawn.append(figure_of(replace(trace, search=replace(trace.search, nodes=nodes)), "search").to_json())
    assert drawn[0] == drawn[1]


def test_a_label_shows_the_first_letters() -> None:
    assert token_label("a" * 40) == "a" * 40
    assert token_label("a" * 41) == "a" * 39 + "…"
    assert token_label("<" * 41) == "&lt;" * 39 + "…"


def test_what_was_written_so_far_is_its_end_however_it_is_put_together() -> None:
    """Against the whole text put together and cut, for tokens of every length, none included."""
    rng = random.Random(0)
    for _ in range(300):
        n, most = rng.randrange(1, 30), rng.choice((1, 3, 60, 130))
        tokens = ["".join(rng.choices("ab ", k=rng.randrange(most + 1))) for _ in range(n)]
        between = rng.choice(("", " "))
        weights = np.full((1, 1, n, n), 1 / n)
        trace = Trace.from_arrays(decoder=weights, target_tokens=tokens, output_tokens=tokens, text=between.join(tokens))
        if between == " " and "".join(tokens) == trace.text:
            continue
        step = rng.randrange(n)
        whole = between.join(tokens[:step])
        want = whole if len(whole) <= 120 else "…" + whole[-119:]
        said = plain(step_sentence(trace, "decoder", 0, 0, step))
        assert f"having written `{want.replace(' ', '␣')}`" in said if want else "having written nothing yet" in said


def test_a_difference_far_into_a_text_is_shown_where_it_is() -> None:
    a, b = (run(3, text="x" * 100_000 + end) for end in ("ab", "ac"))
    said = str(diff(a, b))
    assert "xxab" in said and "xxac" in said
    assert len(said) < 500
