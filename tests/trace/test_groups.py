"""Runs of other models come back from a file: prompts, ids, fills, windows and groups."""

import dataclasses
import io
import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace import planted
from tests.trace.conftest import is_same, load_bytes, members_of, zip_of
from transformer_viz.commands.decode import summary
from transformer_viz.errors import TraceError, TraceTooLargeHere
from transformer_viz.trace import limits
from transformer_viz.trace.groups import MOST_ARRAYS, MOST_GROUPS, Group
from transformer_viz.trace.steps import Fill
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace

RUNS: dict[str, Callable[[], Trace]] = {
    "prompt": lambda: planted.run((3, 4, 2)),
    "windowed": lambda: planted.run((3, 4, 2), is_windowed=True),
    "search": planted.search,
    "windowed search": lambda: planted.search(is_windowed=True),
    "search with a source": lambda: planted.search((0, 4), has_source=True),
    "one token first": lambda: planted.search((0,), has_source=True),
    "fills": planted.filled,
    "groups": lambda: planted.grouped(planted.run((3,))),
    "results": lambda: planted.with_results(planted.search((0, 4), has_source=True)),
}


@pytest.mark.parametrize("name", RUNS)
def test_they_come_back_to_the_bit(name):
    trace = RUNS[name]()
    data = to_bytes(trace)
    assert is_same(load_bytes(data), trace)
    assert to_bytes(load_bytes(data)) == data


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
PLAIN = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda of: st.lists(of, max_size=3))
ARRAYS = st.tuples(
    st.sampled_from(["f2", "f4", "f8", "i4", "u1", "?", ">f4"]), st.lists(st.integers(0, 3), min_size=1, max_size=6)
)
GROUPS = st.dictionaries(
    NAMES,
    st.tuples(st.dictionaries(NAMES, ARRAYS, max_size=3), st.dictionaries(st.text(max_size=5), PLAIN, max_size=3)),
    max_size=4,
)


@settings(max_examples=25)
@given(GROUPS)
def test_any_groups_come_back(groups):
    """Types, shapes (empty ones too), names and notes."""
    trace = planted.filled()
    for name, (arrays, notes) in groups.items():
        made = {each: np.arange(np.prod(shape)).reshape(shape).astype(kind) for each, (kind, shape) in arrays.items()}
        trace = trace.with_group(name, Group(made, notes))
    data = to_bytes(trace)
    assert is_same(load_bytes(data), trace)
    assert to_bytes(load_bytes(data)) == data


def test_a_group_is_plain_members_that_numpy_reads():
    trace = planted.grouped(planted.filled())
    with np.load(io.BytesIO(to_bytes(trace)), allow_pickle=False) as archive:
        for name, array in trace.groups["unheard_of"].arrays.items():
            assert archive[f"groups/unheard_of/arrays/{name}"].tobytes() == array.tobytes()


def test_a_group_is_counted_and_never_changed():
    bare = planted.filled()
    array = np.zeros((3, 5))
    trace = bare.with_group("more", Group({"of_it": array, "bools": np.array([True, False])}))
    assert (bare.groups, trace.nbytes - bare.nbytes) == ({}, 3 * 5 * 8 + 2)
    assert trace.groups["more"].arrays["bools"].tolist() == [1, 0]
    with pytest.raises(ValueError, match="read-only"):
        trace.groups["more"].arrays["of_it"][0] = 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda trace: trace.with_group("../up", Group()),
        lambda trace: trace.with_group("Upper", Group()),
        lambda trace: trace.with_group("", Group()),
        lambda trace: trace.with_group("a" * 33, Group()),
        lambda trace: trace.with_group("meta.json", Group()),
        lambda trace: Group({"a/b": np.zeros(3)}),
        lambda trace: Group({"a": np.zeros(())}),
        lambda trace: Group({"a": np.zeros((1,) * 7)}),
        lambda trace: Group({"a": np.zeros(3, complex)}),
        lambda trace: Group({"a": np.zeros(3, np.int64)}),
        lambda trace: Group({"a": np.array([object()])}),
        lambda trace: Group({"a": [1, 2]}),  # ty: ignore[invalid-argument-type]
        lambda trace: dataclasses.replace(trace, groups={f"g{i}": Group() for i in range(MOST_GROUPS + 1)}),
        lambda trace: trace.with_group("many", Group({f"a{i}": np.zeros(1) for i in range(MOST_ARRAYS + 1)})),
    ],
)
def test_what_no_file_can_hold_is_refused_where_it_is_made(wrong):
    with pytest.raises(TraceError, match=r"group|array"):
        wrong(planted.filled())


def test_as_many_groups_as_may_be_make_a_file_that_is_read():
    arrays = [
        {f"{'a' * 29}_{i:02}": np.zeros((1,) * 6, np.uint8) for i in range(n)}
        for n in [MOST_ARRAYS // MOST_GROUPS] * MOST_GROUPS
    ]
    groups = {f"{'g' * 29}_{i:02}": Group(each) for i, each in enumerate(arrays)}
    trace = dataclasses.replace(planted.search((0, 1), has_source=True, is_windowed=True), groups=groups)
    assert is_same(load_bytes(to_bytes(trace)), trace)


@pytest.mark.parametrize("notes", [{"a": object()}, {"a": "\ud800"}, {"a": json.loads("[" * 64 + "]" * 64)}])
def test_notes_that_json_does_not_know_are_not_written(notes):
    with pytest.raises(TraceError, match="the run holds what JSON cannot"):
        to_bytes(planted.filled().with_group("a", Group(notes=notes)))


@pytest.mark.parametrize(
    "member",
    ["groups/other/arrays/a", "groups/../a", "groups/unheard_of/arrays/a/b", "groups/unheard_of/arrays/A", "groups/a", "/a"],
)
def test_members_of_no_group_are_refused(member):
    parts = members_of(to_bytes(planted.grouped(planted.filled())))
    with pytest.raises(TraceError, match="does not belong there"):
        load_bytes(zip_of({**parts, f"{member}.npy": parts["groups/unheard_of/arrays/of_0.npy"]}))


@pytest.mark.parametrize(
    "header", ["<f4', (3, 5)", "<c8', (5, 1)", ">f4', (5,)", "|O', (5,)", "<f4', (1, 1, 1, 1, 1, 1, 5)", "<f4', ()"]
)
def test_arrays_of_groups_that_lie(header):
    parts = members_of(to_bytes(planted.grouped(planted.filled())))
    kind, shape = header.split("', ")
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    array = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(20)
    with pytest.raises(TraceError):
        load_bytes(zip_of({**parts, "groups/unheard_of/arrays/of_0.npy": array}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: {"n_given": -1}, "n_given is -1"),
        (lambda t: {"n_given": len(t.output_tokens) + 1}, "number of output_tokens, 6"),
        (lambda t: {"target_ids": t.target_ids[1:]}, "target_ids has 5 entries for 6"),
        (lambda t: {"source_ids": (1,)}, "source_ids has 1 entries for 0"),
        (lambda t: {"output_ids": (*t.output_ids[:-1], -1)}, "or a negative one"),
        (lambda t: {"output_ids": (*t.output_ids[:-1], 6)}, r"steps\[5\] says id 2 where output_ids has 6"),
        (lambda t: {"fills": (Fill(place=0, candidates=()),)}, "fills are at 0; ascending places below 0"),
    ],
)
def test_parts_that_do_not_fit_are_named(change, words):
    trace = planted.run((3, 4, 2))
    with pytest.raises(TraceError, match=words):
        dataclasses.replace(trace, **change(trace))


def test_fills_stand_in_the_order_of_the_source():
    trace = planted.filled()
    (fill,) = trace.fills
    for fills in ((fill, fill), (fill, dataclasses.replace(fill, place=1))):
        with pytest.raises(TraceError, match="fill"):
            dataclasses.replace(trace, fills=fills)
    for part in (fill, planted.run((3,)).steps[0]):
        with pytest.raises(TraceError, match="1 ids for 3 candidates"):
            dataclasses.replace(part, candidate_ids=(1,))


def test_tables_and_json_have_ids_only_where_there_are_any(hello):
    assert summary(hello)["source_ids"] is None and summary(hello)["steps"][0]["candidate_ids"] == []
    assert not {"query_id", "key_id"} & set(hello.to_frame())
    trace = planted.search(has_source=True)
    said = summary(trace)
    assert (said["n_given"], said["steps"][0]["token_id"], said["steps"][0]["candidate_ids"]) == (
        3,
        1,
        planted.ranked((0,))[:3],
    )
    assert said["output_ids"] == [*planted.PROMPT[1:], 2]
    (fill,) = summary(planted.filled())["fills"]
    assert (fill["place"], fill["candidate_ids"]) == (2, planted.ranked((0, 1, 3, 2))[:3])
    json.dumps([said, fill], allow_nan=False)
    frame = trace.to_frame()
    assert list(frame)[3:8] == ["query", "query_token", "query_id", "key", "key_token"]
    keys = {"decoder": trace.target_ids or (), "cross": trace.source_ids or ()}
    assert frame.key_id.tolist() == [keys[kind][key] for kind, key in zip(frame.kind, frame.key, strict=True)]
    assert trace.target_ids is not None
    assert frame.query_id.tolist() == [trace.target_ids[query] for query in frame["query"]]


def test_a_few_letters_cannot_fill_the_page():
    """The opening's labels are drawn with every hypothesis."""
    trace = planted.search((0,))
    assert trace.search is not None
    limits.check(trace, "it")
    with pytest.raises(TraceTooLargeHere, match="letters in its tokens"):
        limits.check(dataclasses.replace(trace, search=dataclasses.replace(trace.search, opening=("a" * 20_000,))), "it")
    many = (Fill(place=0, candidates=(("a" * 1_000_001, 0.5),)),)
    with pytest.raises(TraceTooLargeHere, match="letters in its candidates"):
        limits.check(dataclasses.replace(planted.filled(), fills=many), "it")
