"""The search tree as data."""

from dataclasses import replace

import pytest

from transformer_viz import decode, figures
from transformer_viz.errors import OptionError


@pytest.fixture(scope="module")
def trace(tiny):
    return decode(tiny, "hello", strategy="beam", beam_size=4)


def points(figure):
    return [drawn for drawn in figure.data if drawn.customdata is not None]


def test_every_node_stands_at_its_step_and_rank(trace):
    figure = figures.search_tree(trace)
    seen = {}
    for drawn in points(figure):
        for number, x, y in zip(drawn.customdata, drawn.x, drawn.y, strict=True):
            seen[int(number)] = (x, y)
    assert seen == {number: (node.step + 1, node.rank) for number, node in enumerate(trace.search.nodes)}


def test_every_node_has_one_line_from_its_parent(trace):
    figure = figures.search_tree(trace)
    lines = [drawn for drawn in figure.data if drawn.mode == "lines"]
    segments = sorted(
        (drawn.x[i], drawn.y[i], drawn.x[i + 3], drawn.y[i + 3]) for drawn in lines for i in range(0, len(drawn.x), 5)
    )
    nodes = trace.search.nodes
    wanted = sorted((n.step, 0 if n.parent is None else nodes[n.parent].rank, n.step + 1, n.rank) for n in nodes)
    assert segments == wanted


def test_the_chosen_path_is_strong_and_greedy_stands_above(tiny, trace):
    number = trace.search.best[-1]
    figure = figures.search_tree(trace, number, greedy=decode(tiny, "hello"))
    strong = next(drawn for drawn in figure.data if drawn.mode == "lines" and drawn.line.width == 3.2)
    path = trace.search.path(number)
    assert [strong.y[i + 3] for i in range(0, len(strong.y), 5)] == [node.rank for node in path]
    above = next(drawn for drawn in figure.data if drawn.mode == "text")
    assert above.text[0] == "greedy"
    assert len(above.text) == 1 + len(decode(tiny, "hello").output_tokens)


def test_no_search_no_tree(hello, trace):
    with pytest.raises(OptionError, match="no beam search"):
        figures.search_tree(hello)
    with pytest.raises(OptionError, match="node=9999"):
        figures.search_tree(trace, 9999)


@pytest.mark.parametrize(("length", "is_upright"), [(3, False), (30, True)])
def test_where_labels_have_no_room_the_chosen_path_stands_upright_below(tiny, length, is_upright):
    made = decode(tiny, "hello", strategy="beam", beam_size=2, max_length=length, ban=["<end>"])
    assert made.search is not None
    words = tuple(replace(node, token=" Paris") for node in made.search.nodes)
    trace = replace(made, search=replace(made.search, nodes=words))
    tree = figures.search_tree(trace, greedy=trace)
    named = {text for drawn in points(tree) for text in drawn.text}
    assert (named == {""}) == is_upright
    assert any(drawn.mode == "text" for drawn in tree.data) != is_upright
    axis = tree.layout.xaxis
    assert axis.ticktext[:2] == (("␣Paris 1", "␣Paris 2") if is_upright else ("1", "2"))
    assert (axis.tickangle == -90) == is_upright
    least = 620 / (1 + length)
    assert all((b - a) * least >= 13 for a, b in zip(axis.tickvals, axis.tickvals[1:], strict=False))
