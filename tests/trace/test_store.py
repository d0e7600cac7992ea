"""Trace files: the same bits come back, without torch."""

import dataclasses
import hashlib
import io
import json
import math
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import transformer_viz as tv
from tests.attentions import with_parts
from tests.trace import planted
from tests.trace.conftest import is_same, load_bytes, members_of
from transformer_viz import decode, load_trace, save_trace
from transformer_viz.commands.decode import summary
from transformer_viz.errors import TraceError
from transformer_viz.terms import KINDS
from transformer_viz.trace.groups import MOST_ARRAYS, MOST_GROUPS, Group
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace

ODD: dict[str, Any] = {"source": "é\u202e\x00😀", "text": "<b>$x$"}
ODD["source_tokens"] = ("😀", "\u0301", "\n", "\\", '"', "", "␣")


def masked_by_head(trace: Trace) -> dict[str, Any]:
    reasons = np.zeros(trace.cross.weights.shape, np.uint8)
    reasons[1, 2, 0, 3] = 4
    return {"attentions": with_parts(trace, "cross", reasons=reasons)}


def mistaken(trace: Trace) -> dict[str, Any]:
    return {"attentions": with_parts(trace, "cross", weights=np.full_like(trace.cross.weights, np.nan)), "mistake": "no mask"}


def drawn(trace: Trace) -> dict[str, Any]:
    """Sampled, with an unknown rank and a probability of 0, whose logarithm JSON cannot hold."""
    more: dict[str, Any] = {"sampling_probability": 0.25, "rank": None, "probability": 0.0, "log_probability": -math.inf}
    return {"steps": tuple(dataclasses.replace(step, **more) for step in trace.steps)}


def as_many_groups_as_may_be() -> Trace:
    arrays = {f"{'a' * 29}_{i:02}": np.zeros((1,) * 6, np.uint8) for i in range(MOST_ARRAYS // MOST_GROUPS)}
    groups = {f"{'g' * 29}_{i:02}": Group(arrays) for i in range(MOST_GROUPS)}
    return dataclasses.replace(planted.search((0, 1), has_source=True, is_windowed=True), groups=groups)


CHANGED: dict[str, Callable[[Trace], dict[str, Any]]] = {
    "as it is": lambda trace: {},
    "masks by head": masked_by_head,
    "a mistake with NaN": mistaken,
    "no encoder": lambda trace: {"attentions": {"decoder": trace.decoder, "cross": trace.cross}},
    "no answer": lambda trace: {"expected": None, "expected_tokens": None},
    "drawn": drawn,
    "odd letters": lambda trace: ODD,
}
DECODED: dict[str, dict[str, Any]] = {
    "padded": {"pad_to": 11},
    "beam, half precision": {"strategy": "beam", "precision": "float16"},
    "beam, one layer": {"strategy": "beam", "layers": (1,)},
    "beam, part": {"strategy": "beam", "kinds": ("decoder", "cross"), "layers": (0, 2), "precision": "float16"},
    "beam, encoder": {"strategy": "beam", "kinds": ("encoder",)},
    "sampled": {"strategy": "sample", "seed": 3},
}
PLANTED: dict[str, Callable[[], Trace]] = {
    "prompt": lambda: planted.run((3, 4, 2)),
    "windowed": lambda: planted.run((3, 4, 2), is_windowed=True),
    "windowed search": lambda: planted.search(is_windowed=True),
    "search with a source": lambda: planted.search((0, 4), has_source=True),
    "fills": planted.filled,
    "groups": lambda: planted.grouped(planted.run((3,))),
    "many groups": as_many_groups_as_may_be,
    "results": lambda: planted.with_results(planted.search((0, 4), has_source=True)),
}


@pytest.mark.parametrize("name", [*CHANGED, *DECODED, *PLANTED])
def test_the_same_bits_come_back(hello, tiny, name):
    """Saved twice it is the same file."""
    if name in CHANGED:
        trace = dataclasses.replace(hello, **CHANGED[name](hello))
    else:
        trace = PLANTED[name]() if name in PLANTED else decode(tiny, "hello", **DECODED[name])
    data = to_bytes(trace)
    loaded = load_bytes(data)
    assert is_same(loaded, trace) and tv.diff(loaded, trace).equal
    assert to_bytes(loaded) == data
    arrays: list[Any] = [array for attention in loaded.attentions.values() for array in (attention.weights, attention.reasons)]
    arrays += [] if trace.search is None else [trace.search.decoder_rows, trace.search.cross_rows, trace.search.decoder_reasons]
    assert not any(array.flags.writeable for array in arrays if array is not None)
    assert trace.nbytes >= sum(array.nbytes for array in arrays if array is not None)


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
PLAIN = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda of: st.lists(of, max_size=3))
ARRAYS = st.tuples(
    st.sampled_from(["f2", "f4", "f8", "i4", "u1", "?", ">f4"]), st.lists(st.integers(0, 3), min_size=1, max_size=6)
)
NOTES = st.dictionaries(st.text(max_size=5), PLAIN, max_size=3)


@settings(max_examples=25)
@given(st.dictionaries(NAMES, st.tuples(st.dictionaries(NAMES, ARRAYS, max_size=3), NOTES), max_size=4))
def test_any_groups_come_back(groups):
    """Types, shapes (empty ones too), names and notes."""
    trace = planted.filled()
    for name, (arrays, notes) in groups.items():
        made = {each: np.arange(np.prod(shape)).reshape(shape).astype(kind) for each, (kind, shape) in arrays.items()}
        trace = trace.with_group(name, Group(made, notes))
    data = to_bytes(trace)
    assert is_same(load_bytes(data), trace) and to_bytes(load_bytes(data)) == data


@pytest.mark.parametrize("notes", [{"a": object()}, {"a": "\ud800"}, {"a": json.loads("[" * 64 + "]" * 64)}])
def test_notes_that_json_does_not_know_are_not_written(notes):
    with pytest.raises(TraceError, match="the run holds what JSON cannot"):
        to_bytes(planted.filled().with_group("a", Group(notes=notes)))


def test_numpy_reads_the_arrays_without_pickle():
    """It is a plain `.npz`: others can read it without this package. No clock is in it."""
    trace = planted.grouped(planted.run((3, 4, 2)))
    data = to_bytes(trace)
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        for kind, attention in trace.attentions.items():
            assert archive[f"attentions/{kind}/weights"].tobytes() == attention.weights.tobytes()
            assert archive[f"attentions/{kind}/reasons"].tolist() == attention.reasons.tolist()
        for name, array in trace.groups["unheard_of"].arrays.items():
            assert archive[f"groups/unheard_of/arrays/{name}"].tobytes() == array.tobytes()
    meta = json.loads(members_of(data)["meta.json"])
    assert (meta["format"], meta["target_tokens"]) == (1, list(trace.target_tokens))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {info.date_time for info in archive.infolist()} == {(2017, 6, 12, 0, 0, 0)}


def test_half_precision_halves_the_arrays(tiny):
    whole, half = (members_of(to_bytes(decode(tiny, "hello", precision=p))) for p in ("float32", "float16"))
    for kind in KINDS:
        name = f"attentions/{kind}/weights.npy"
        assert b"'<f2'" in half[name][:128]
        assert len(half[name]) - 128 == (len(whole[name]) - 128) // 2


PROGRAM = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "plotly", "streamlit"):
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
import hashlib
import transformer_viz as tv
trace = tv.load_trace(sys.argv[1])
for kind in trace.kinds:
    print(kind, hashlib.sha256(trace.attentions[kind].weights.tobytes() + trace.attentions[kind].mask.tobytes()).hexdigest())
print(len(trace.to_frame()), tv.analysis.alignment(trace)[0].layer)
"""


def test_a_file_is_loaded_and_graded_without_torch_and_plotly(hello, tmp_path):
    save_trace(hello, tmp_path / "hello.npz")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "hello.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    parts = {kind: attention.weights.tobytes() + attention.mask.tobytes() for kind, attention in hello.attentions.items()}
    want = [f"{kind} {hashlib.sha256(part).hexdigest()}" for kind, part in parts.items()]
    assert done.stdout.splitlines() == [*want, f"{len(hello.to_frame())} {tv.analysis.alignment(hello)[0].layer}"]


def test_the_same_run_twice_is_the_same_file_but_for_the_seconds(tiny):
    """So that a file can be compared, and kept under version control."""
    ways: list[dict[str, Any]] = [{"strategy": "beam"}, {"strategy": "sample", "seed": 3}, {"mistake": "wrong-axis"}]
    for way in ways:
        runs = [decode(tiny, "hello", **way) for _ in range(2)]
        first, second = (to_bytes(dataclasses.replace(t, made_by={**t.made_by, "seconds": 0})) for t in runs)
        assert first == second


def test_what_cannot_be_written_is_named_as_it_was_asked_for(hello, tmp_path, monkeypatch):
    """As in a folder that may only be read, which root may write to."""

    def mkdir(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(PermissionError) as raised:
        tv.save_trace(hello, tmp_path / "a.npz")
    assert raised.value.filename == str(tmp_path / "a.npz")


def test_a_path_bytes_and_open_files_are_read_alike(hello, saved, tmp_path):
    """An upload is an open file, perhaps read once already."""
    save_trace(hello, tmp_path / "hello.npz")
    read = io.BytesIO(saved)
    read.read()
    for given_file in (tmp_path / "hello.npz", str(tmp_path / "hello.npz"), saved, bytearray(saved), memoryview(saved), read):
        assert is_same(load_trace(given_file), hello)
    assert not read.closed, "whoever opened it closes it"
    with (tmp_path / "hello.npz").open("rb") as file:
        assert is_same(load_trace(file), hello)


def test_a_caller_sets_how_large_a_file_may_be(hello, saved):
    unpacked = sum(info.file_size for info in zipfile.ZipFile(io.BytesIO(saved)).infolist())
    assert load_trace(saved, max_bytes=len(saved), max_unpacked=16 * unpacked).text == hello.text
    with pytest.raises(TraceError, match=rf"{len(saved):,} bytes; at most {len(saved) - 1:,}"):
        load_trace(saved, max_bytes=len(saved) - 1)
    with pytest.raises(TraceError, match="unpacks to more than"):
        load_trace(saved, max_unpacked=unpacked - 1)


def test_tables_and_json_have_ids_only_where_there_are_any(hello):
    assert summary(hello)["source_ids"] is None and summary(hello)["steps"][0]["candidate_ids"] == []
    assert not {"query_id", "key_id"} & set(hello.to_frame())
    trace = planted.search(has_source=True)
    said = summary(trace)
    step = said["steps"][0]
    assert (said["n_given"], step["token_id"], step["candidate_ids"]) == (3, 1, planted.ranked((0,))[:3])
    assert said["output_ids"] == [*planted.PROMPT[1:], 2]
    (fill,) = summary(planted.filled())["fills"]
    assert (fill["place"], fill["candidate_ids"]) == (2, planted.ranked((0, 1, 3, 2))[:3])
    json.dumps([said, fill], allow_nan=False)
    frame = trace.to_frame()
    assert list(frame)[3:8] == ["query", "query_token", "query_id", "key", "key_token"]
    keys = {"decoder": trace.target_ids or (), "cross": trace.source_ids or ()}
    assert frame.key_id.tolist() == [keys[kind][key] for kind, key in zip(frame.kind, frame.key, strict=True)]
    assert frame.query_id.tolist() == [keys["decoder"][query] for query in frame["query"]]
