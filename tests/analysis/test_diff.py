"""`diff`: one changed thing is found where it was changed, nothing else is, and swapping the runs turns the signs."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transformer_viz as tv
from tests.attentions import with_parts
from tests.trace import planted
from transformer_viz import Trace, decode
from transformer_viz.comparison.diff import WHATS, TraceDiff, diff
from transformer_viz.errors import OptionError
from transformer_viz.terms import Kind
from transformer_viz.trace.groups import Group
from transformer_viz.trace.steps import Fill

KINDS = ("encoder", "decoder", "cross")


def only(found: TraceDiff) -> Any:
    (difference,) = found.differences
    return difference


def with_cell(trace: Trace, kind: Kind, place: tuple[int, ...], by: float) -> Trace:
    weights = trace.attentions[kind].weights.copy()
    weights[place] += np.float32(by)
    return replace(trace, attentions=with_parts(trace, kind, weights=weights))


def test_a_run_equals_itself_and_another_of_the_same(hello, tiny):
    assert diff(hello, hello).equal
    found = tv.diff(hello, decode(tiny, "hello"))
    assert found.equal
    assert found.differences == ()
    assert str(found).startswith("Equal to the last bit.")


def test_times_devices_and_versions_are_notes(hello):
    other = replace(hello, made_by={**hello.made_by, "seconds": 9.5, "device": "cuda", "versions": {"torch": "1"}})
    found = diff(hello, other)
    assert found.equal
    assert [note.split(":")[0] for note in found.notes] == ["seconds", "device", "versions"]
    assert "device: cpu → cuda" in str(found)


@pytest.mark.parametrize("kind", KINDS)
def test_one_changed_weight_is_found_where_it_is(hello, kind):
    layer, head, query, key = place = (1, 3, 4, 2)
    found = only(diff(hello, with_cell(hello, kind, place, 0.25)))
    before = float(hello.attentions[kind].weights[place])
    assert (found.what, found.where.kind, found.count) == ("attention", kind, 1)
    assert (found.where.layer, found.where.head, found.where.query, found.where.key) == place
    assert found.where.query_token == hello.attentions[kind].queries[query]
    assert found.where.key_token == hello.attentions[kind].keys[key]
    assert found.before == before
    assert found.size == pytest.approx(0.25, abs=1e-6)
    assert found.size == found.after - found.before
    for number, word in ((layer, "layer"), (head, "head"), (query, "query"), (key, "key")):
        assert f"{word} {number + 1}" in str(found), "people count from 1"


def test_the_tolerance_is_a_limit_that_is_allowed_itself(hello):
    base = replace(hello, attentions=with_parts(hello, "cross", weights=np.full_like(hello.cross.weights, 0.5)))
    other = with_cell(base, "cross", (0, 0, 0, 0), 0.25)
    assert not diff(base, other, tolerance=0.2499).equal
    found = diff(base, other, tolerance=0.25)
    assert found.equal
    assert found.notes == ("numbers within the tolerance differ by up to 0.25",)
    assert str(found).startswith("Equal within 0.25.")


changes = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 4), st.integers(0, 6), st.floats(0, 1, width=32)), max_size=6
)


@given(changes, changes, st.sampled_from([0.0, 1e-3, 0.3]))
def test_brute_force_and_antisymmetry(first, second, tolerance):
    """Every cell compared by hand; a − b is −(b − a)."""

    def weights_of(cells):
        weights = np.full((2, 3, 5, 7), 1 / 7, np.float32)
        for *place, value in cells:
            weights[tuple(place)] = value
        return weights

    labels: dict[str, Any] = {"source_tokens": list("abcdefg"), "target_tokens": list("hijkl")}
    a, b = (Trace.from_arrays(cross=weights_of(cells), normalised=False, **labels) for cells in (first, second))
    there, back = diff(a, b, tolerance=tolerance), diff(b, a, tolerance=tolerance)
    x, y = weights_of(first).astype(float), weights_of(second).astype(float)
    sizes = {place: y[place] - x[place] for place in np.ndindex(x.shape)}
    apart = {place: size for place, size in sizes.items() if abs(size) > tolerance}
    assert there.equal == back.equal == (not apart)
    if apart:
        found, mirrored = only(there), only(back)
        assert found.count == mirrored.count == len(apart)
        assert abs(found.size) == max(map(abs, apart.values()))
        assert mirrored.size == -found.size
        assert (mirrored.before, mirrored.after) == (found.after, found.before)
        where = found.where
        assert apart[where.layer, where.head, where.query, where.key] == found.size
        assert (where.query_token, where.key_token) == ("hijkl"[where.query], "abcdefg"[where.key])


def test_nan_equals_nan_and_nothing_else(hello):
    nan = np.full_like(hello.cross.weights, np.nan)
    broken = replace(hello, attentions=with_parts(hello, "cross", weights=nan), mistake="padded-queries-nan")
    assert diff(broken, replace(broken)).equal
    there = {found.what: found for found in diff(hello, broken).differences}
    back = {found.what: found for found in diff(broken, hello).differences}
    assert set(there) == {"attention", "changes"}
    assert (there["attention"].size, back["attention"].size) == (math.inf, -math.inf)
    assert there["attention"].count == nan.size
    assert math.isnan(there["attention"].after)
    assert not diff(hello, broken, tolerance=1e9, ignore=["changes"]).equal, "no tolerance covers what is no number"


def test_other_shapes_are_said_and_the_common_part_is_compared(tiny, hello):
    longer = decode(tiny, "hello", max_length=3)
    found = {(d.what, d.where.field, d.where.kind): d for d in diff(hello, longer).differences}
    assert found["attention", "shape", "decoder"].before == hello.decoder.weights.shape
    assert found["attention", "shape", "decoder"].after == (3, 5, 3, 3)
    assert ("attention", "attention", "cross") not in found, "the first rows are those of the same run"
    cut = replace(hello, attentions=with_parts(hello, "encoder", weights=hello.encoder.weights[:, :2]))
    shape = only(diff(hello, cut))
    assert (shape.before, shape.after, shape.size) == ((2, 5, 7, 7), (2, 2, 7, 7), None)
    gone = Trace.from_arrays(cross=hello.cross.weights, source_tokens=hello.source_tokens, target_tokens=hello.target_tokens)
    kinds = {d.where.kind: (d.before, d.after) for d in diff(hello, gone).differences if d.where.field == "shape"}
    assert kinds == {"encoder": ((2, 5, 7, 7), None), "decoder": (hello.decoder.weights.shape, None)}


def test_masks_name_the_cell_and_both_reasons(hello):
    reasons = hello.cross.reasons.copy()
    reasons[2, 3] = 1
    found = only(diff(hello, replace(hello, attentions=with_parts(hello, "cross", reasons=reasons))))
    assert (found.what, found.where.kind, found.where.layer) == ("masks", "cross", None)
    assert (found.where.query, found.where.key, found.before, found.after) == (2, 3, "allowed", "padding")
    by_head = np.broadcast_to(hello.cross.reasons, hello.cross.weights.shape).copy()
    assert diff(hello, replace(hello, attentions=with_parts(hello, "cross", reasons=by_head))).equal, "the same, said longer"
    by_head = by_head.copy()
    by_head[1, 4, 0, 5] = 4
    found = only(diff(hello, replace(hello, attentions=with_parts(hello, "cross", reasons=by_head))))
    assert (found.where.layer, found.where.head, found.where.query, found.where.key) == (1, 4, 0, 5)


@pytest.mark.parametrize(
    ("change", "what", "field"),
    [
        (lambda t: {"source": "other"}, "input", "source"),
        (lambda t: {"source_letters": (None,) * 7}, "input", "source_letters"),
        (lambda t: {"made_by": {**t.made_by, "checkpoint": "x"}}, "model", "checkpoint"),
        (lambda t: {"made_by": {**t.made_by, "variant": "x"}}, "model", "variant"),
        (lambda t: {"made_by": {**t.made_by, "task": "x"}}, "model", "task"),
        (lambda t: {"made_by": {**t.made_by, "strategy": "x"}}, "settings", "strategy"),
        (lambda t: {"made_by": {**t.made_by, "new": [1]}}, "settings", "new"),
        (lambda t: {"text": "x"}, "tokens", "text"),
        (lambda t: {"finished": "length"}, "tokens", "finished"),
        (lambda t: {"expected": None}, "answer", "expected"),
        (lambda t: {"expected_tokens": None}, "answer", "expected_tokens"),
        (lambda t: {"alignment": (1, *t.alignment[1:])}, "answer", "alignment"),
        (lambda t: {"mistake": "no-causal"}, "changes", "mistake"),
        (lambda t: {"edits": ("cross:off",)}, "changes", "edits"),
        (lambda t: {"attentions": with_parts(t, "cross", scores=t.cross.weights * 2)}, "scores", "shape"),
        (lambda t: {"steps": ()}, "steps", "recorded_steps"),
    ],
)
def test_each_part_is_compared_and_can_be_left_out(hello, change, what, field):
    other = replace(hello, **change(hello))
    found = only(diff(hello, other))
    assert (found.what, found.where.field) == (what, field)
    assert diff(hello, other, ignore=[what]).equal
    assert not diff(hello, other, ignore=[part for part in WHATS if part != what]).equal
    assert diff(other, other).equal


def test_json_is_plain_and_counts_from_0(hello):
    nan = np.full_like(hello.cross.weights, np.nan)
    found = diff(hello, replace(hello, attentions=with_parts(hello, "cross", weights=nan), mistake="x"))
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert data["equal"] is False
    attention = data["differences"][0]
    assert attention["where"]["kind"] == "cross"
    assert (attention["where"]["layer"], attention["where"]["head"]) == (0, 0)
    assert (attention["after"], attention["size"], attention["count"]) == (None, None, nan.size)
    assert data["differences"][1]["where"] == {"field": "mistake"}


@pytest.mark.parametrize(
    ("arguments", "options", "named"),
    [
        (("a.npz",), {}, ["before is str", "load_trace"]),
        ((), {"tolerance": -1}, ["tolerance=-1"]),
        ((), {"tolerance": math.nan}, ["tolerance=nan"]),
        ((), {"tolerance": math.inf}, ["tolerance=inf"]),
        ((), {"tolerance": "0"}, ["tolerance='0'"]),
        ((), {"ignore": ["times"]}, ["'times'", "attention", "search"]),
    ],
)
def test_impossible_arguments(hello, arguments, options, named):
    with pytest.raises(OptionError) as caught:
        diff(*(arguments or (hello,)), hello, **options)
    for part in named:
        assert part in str(caught.value)


def test_what_only_other_models_runs_have_is_compared_too():
    """Ids behind equal labels, what was given, fills, a search's prompt, and groups."""
    run, search = planted.run((5, 2)), planted.search()
    assert diff(run, run).equal and diff(search, search).equal
    # The third and fourth token of the prompt have one label.
    prompt = (planted.PROMPT[0], planted.PROMPT[1], planted.PROMPT[3], planted.PROMPT[2])
    other = replace(run, target_ids=(*prompt, *(run.target_ids or ())[len(prompt) :]))
    assert other.target_tokens == run.target_tokens
    assert (only(diff(run, other)).what, only(diff(run, other)).where.field) == ("tokens", "target_ids")
    assert only(diff(run, replace(run, n_given=1))).before == run.n_given
    fill = Fill(place=1, candidates=(("�", 0.5), ("�", 0.25)), candidate_ids=(3, 4))
    alone = Trace.from_arrays(encoder=np.full((3, 3), 1 / 3), source_tokens=["a", "[MASK]", "b"])
    first, second = replace(alone, fills=(fill,)), replace(alone, fills=(replace(fill, candidates=(("�", 0.5), ("�", 0.125))),))
    assert only(diff(first, second)).where.token == "� #4"
    assert (only(diff(first, alone)).where.field, only(diff(first, alone)).after) == ("fills", None)
    groups = [run.with_group("mine", Group(arrays={"query": np.array([1.0, x], np.float32)}, notes={})) for x in (2, 5)]
    found = only(diff(*groups))
    assert (found.what, found.where.field, found.size) == ("groups", "mine.arrays.query", 3.0)
    assert not diff(groups[0], run).equal
    assert search.search is not None
    swapped = [{3: 4, 4: 3}.get(node.token_id or 0, node.token_id) for node in search.search.nodes]
    nodes = [replace(node, token_id=number) for node, number in zip(search.search.nodes, swapped, strict=True)]
    elsewhere = only(diff(search, replace(search, search=replace(search.search, nodes=tuple(nodes)))))
    assert (elsewhere.what, elsewhere.where.field) == ("search", "nodes.token_id")


def test_what_a_run_holds_of_measures_and_heads_is_compared() -> None:
    run = planted.with_results(planted.search(has_source=True))
    inside, name = run.insides[0], "value_weighted_cross"
    output = inside.output.copy()
    output[1] += 0.5
    other = replace(run, insides=(replace(inside, output=output), *run.insides[1:]))
    found = only(diff(run, other))
    assert (found.what, found.where.field, found.where.cell) == ("insides", "cross.2.1:2.output", (1,))
    assert found.size == pytest.approx(0.5) and "cell 2" in str(found)
    values = run.attributions[name].values * np.float32(2)
    measured = replace(run, attributions={**run.attributions, name: replace(run.attributions[name], values=values)})
    assert (only(diff(run, measured)).what, only(diff(run, measured)).where.field) == ("attributions", f"{name}.values")
    assert {one.what for one in diff(run, replace(run, insides=(), attributions={})).differences} == {"insides", "attributions"}
