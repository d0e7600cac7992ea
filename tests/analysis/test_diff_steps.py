"""`diff` of what was written: the first step that parts, probabilities, candidates that may change places, searches."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_viz import Trace, decode
from transformer_viz.comparison.align import paired
from transformer_viz.comparison.diff import diff


def fields(found):
    return {(d.what, d.where.field): d for d in found.differences}


def with_step(trace: Trace, t: int, **changes) -> Trace:
    steps = list(trace.steps)
    steps[t] = replace(steps[t], **changes)
    return replace(trace, steps=tuple(steps), output_tokens=tuple(step.token for step in steps))


def test_the_first_step_that_parts(hello):
    token = next(token for token, _ in hello.steps[3].candidates if token != hello.output_tokens[3])
    other = with_step(with_step(hello, 4, token="b"), 3, token=token)
    found = fields(diff(hello, other))[("tokens", "output_tokens")]
    assert (found.where.position, found.before, found.after, found.count) == (3, hello.output_tokens[3], token, 2)
    assert "position 4" in str(found)


def test_probabilities_are_compared_as_far_as_both_have_read_the_same(hello):
    """A step after another prefix answers another question."""
    found = fields(diff(hello, with_step(hello, 2, probability=0.125, log_probability=math.log(0.125))))
    assert set(found) == {("steps", "probability"), ("steps", "log_probability")}
    assert found["steps", "probability"].where.position == 2
    assert found["steps", "probability"].size == 0.125 - hello.steps[2].probability
    read = list(hello.target_tokens)
    read[2] = "d" if read[2] != "d" else "b"
    parted = replace(with_step(with_step(hello, 1, probability=0.25), 2, probability=0.125), target_tokens=tuple(read))
    found = fields(diff(hello, parted))
    assert found["steps", "probability"].where.position == 1
    assert found["steps", "probability"].count == 1


def test_a_rank_and_equal_candidates_may_change_places_within_a_tolerance(hello):
    a = with_step(hello, 1, candidates=(("x", 0.5), ("y", 0.25), ("z", 0.125)), rank=0)
    b = with_step(hello, 1, candidates=(("y", 0.375), ("x", 0.375), ("z", 0.125)), rank=1)
    assert diff(a, b, tolerance=0.125).equal
    found = fields(diff(a, b))
    assert found["steps", "rank"].after == 1
    assert (found["steps", "candidates"].where.token, found["steps", "candidates"].count) == ("x", 2)
    swapped = with_step(a, 1, candidates=(("x", 0.5), ("z", 0.125), ("y", 0.25)))
    order = fields(diff(a, swapped))
    assert set(order) == {("steps", "order_of_candidates")}


def test_a_candidate_that_only_one_has_counts_as_far_as_it_must_differ(hello):
    """What is not listed is at most as probable as the last that is."""
    a = with_step(hello, 1, candidates=(("x", 0.5), ("y", 0.25)))
    b = with_step(hello, 1, candidates=(("x", 0.5), ("z", 0.1875)))
    found = fields(diff(a, b, tolerance=0.01))["steps", "candidates"]
    assert (found.where.token, found.before, found.after, found.size) == ("y", 0.25, 0.1875, -0.0625)
    assert diff(a, b, tolerance=0.0625).equal
    fewer = with_step(hello, 1, candidates=(("x", 0.5),))
    assert set(fields(diff(a, fewer))) == {("steps", "number_of_candidates"), ("steps", "order_of_candidates")}


lists = st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 1)), max_size=5)


@given(lists, lists)
def test_pairs_mirror_each_other(a, b):
    a, b = (sorted(side, key=lambda pair: -pair[1]) for side in (a, b))
    assert sorted(paired(a, b)) == sorted((token, p, q) for token, q, p in paired(b, a))
    assert all(p == q for _, p, q in paired(a, a))


# Searches


@pytest.fixture(scope="module")
def search(tiny) -> Trace:
    return decode(tiny, "hello", strategy="beam", beam_size=3, max_length=4)


def test_a_wider_search_names_where_it_first_parts(search, tiny):
    wider = decode(tiny, "hello", strategy="beam", beam_size=4, max_length=4)
    assert search.search is not None
    assert wider.search is not None
    found = fields(diff(search, wider))
    assert found["search", "settings.beam_size"].size is None and found["search", "settings.beam_size"].after == 4
    states = [[node.state for node in run.search.nodes] for run in (search, wider) if run.search]
    first = next(i for i, (a, b) in enumerate(zip(*states, strict=False)) if a != b)
    state = found["search", "nodes.state"]
    assert (state.where.position, state.before, state.after) == (first, states[0][first], states[1][first])


def test_a_changed_score_and_a_changed_row(search):
    nodes = list(search.search.nodes)
    nodes[2] = replace(nodes[2], score=nodes[2].score - 0.5)
    rows = search.search.cross_rows.copy()
    rows[1, 2, 3, 4] += 0.25
    changed = replace(search, search=replace(search.search, nodes=tuple(nodes), cross_rows=rows))
    found = fields(diff(search, changed))
    assert set(found) == {("search", "nodes.score"), ("search", "cross_rows")}
    assert (found["search", "nodes.score"].where.position, found["search", "nodes.score"].size) == (2, pytest.approx(-0.5))
    assert found["search", "cross_rows"].where.cell == (1, 2, 3, 4)
