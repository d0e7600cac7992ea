"""Trace files: the same bits come back, without torch."""

import dataclasses
import io
import json
import math
import subprocess
import sys
import zipfile
from typing import Any

import numpy as np
import pytest

from tests.attentions import with_parts
from tests.trace.conftest import is_same, load_bytes, members_of
from transformer_viz import decode, load_trace, save_trace
from transformer_viz.errors import TraceError
from transformer_viz.trace.store import to_bytes

KINDS = ("encoder", "decoder", "cross")


def test_the_same_bits_come_back(hello, tmp_path):
    path = tmp_path / "hello.npz"
    save_trace(hello, path)
    loaded = load_trace(path)
    assert is_same(loaded, hello)
    assert load_trace(str(path)).steps == hello.steps
    for kind in KINDS:
        with pytest.raises(ValueError, match="read-only"):
            loaded.attentions[kind].weights[0] = 0


def test_unusual_traces_come_back(hello, tiny):
    """Padding, masks by head, NaN of a named mistake, missing kinds, no answer, sampling, odd letters."""
    reasons = np.zeros(hello.cross.weights.shape, np.uint8)
    reasons[1, 2, 0, 3] = 4
    nan = np.full_like(hello.cross.weights, np.nan)
    changes: list[dict[str, Any]] = [
        {"attentions": with_parts(hello, "cross", reasons=reasons)},
        {"attentions": with_parts(hello, "cross", weights=nan), "mistake": "no mask"},
        {"attentions": {"decoder": hello.decoder, "cross": hello.cross}},
        {"expected": None, "expected_tokens": None},
        {"steps": tuple(dataclasses.replace(s, sampling_probability=0.25, rank=3) for s in hello.steps)},
        {"source": "é\u202e\x00😀", "text": "<b>$x$", "source_tokens": ("😀", "\u0301", "\n", "\\", '"', "", "␣")},
    ]
    for trace in [dataclasses.replace(hello, **change) for change in changes[:1] + changes[2:]] + [
        decode(tiny, "he", pad_to=11)
    ]:
        assert is_same(load_bytes(to_bytes(trace)), trace)
    mistaken = load_bytes(to_bytes(dataclasses.replace(hello, **changes[1])))
    assert mistaken.mistake == "no mask"
    assert np.isnan(mistaken.cross.weights).all()


def test_two_saves_are_the_same_bytes(hello, saved):
    assert to_bytes(hello) == saved
    assert to_bytes(load_bytes(saved)) == saved
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        assert {info.date_time for info in archive.infolist()} == {(2017, 6, 12, 0, 0, 0)}, "no clock in the file"


def test_numpy_reads_the_arrays_without_pickle(hello, saved):
    """It is a plain `.npz`: others can read it without this package."""
    with np.load(io.BytesIO(saved), allow_pickle=False) as archive:
        for kind in KINDS:
            assert archive[f"attentions/{kind}/weights"].tobytes() == hello.attentions[kind].weights.tobytes()
            assert archive[f"attentions/{kind}/reasons"].tolist() == hello.attentions[kind].reasons.tolist()
    meta = json.loads(members_of(saved)["meta.json"])
    assert meta["format"] == 1
    assert meta["source_tokens"] == list(hello.source_tokens)


def test_loads_where_torch_cannot_be_imported(hello, tmp_path):
    path = tmp_path / "hello.npz"
    save_trace(hello, path)
    program = f"""
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch is not here")
sys.meta_path.insert(0, NoTorch())
import hashlib
import transformer_viz as tv
trace = tv.load_trace({str(path)!r})
for kind in trace.kinds:
    print(kind, hashlib.sha256(trace.attentions[kind].weights.tobytes() + trace.attentions[kind].mask.tobytes()).hexdigest())
print(len(trace.to_frame()))
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    import hashlib

    want = [
        f"{kind} {hashlib.sha256(hello.attentions[kind].weights.tobytes() + hello.attentions[kind].mask.tobytes()).hexdigest()}"
        for kind in KINDS
    ]
    assert done.stdout.split("\n")[:4] == [*want, str(len(hello.to_frame()))]


def test_the_same_run_twice_is_the_same_file_but_for_the_seconds(tiny):
    """So that a file can be compared, and kept under version control."""

    def timeless(trace):
        return to_bytes(dataclasses.replace(trace, made_by={**trace.made_by, "seconds": 0}))

    ways = [
        lambda: decode(tiny, "hello"),
        lambda: decode(tiny, "hello", strategy="beam", beam_size=2),
        lambda: decode(tiny, "hello", strategy="sample", seed=3),
        lambda: decode(tiny, "hello", mistake="wrong-axis"),
    ]
    for way in ways:
        first, second = way(), way()
        assert first is not second
        assert timeless(first) == timeless(second)
    assert timeless(decode(tiny, "hello")) != timeless(decode(tiny, "hell"))


def test_a_path_bytes_and_open_files_are_read_alike(hello, saved, tmp_path):
    """An upload is an open file, perhaps read once already."""
    save_trace(hello, tmp_path / "hello.npz")
    read = io.BytesIO(saved)
    read.read()
    for given in (tmp_path / "hello.npz", str(tmp_path / "hello.npz"), saved, bytearray(saved), memoryview(saved), read):
        assert is_same(load_trace(given), hello)
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


@pytest.mark.parametrize(
    "given", [3, None, ["a"], io.StringIO("text"), "a\0b"], ids=["number", "nothing", "list", "text", "null"]
)
def test_what_is_no_file(given):
    with pytest.raises(TraceError):
        load_trace(given)


def test_the_name_of_an_upload_is_in_the_message():
    upload = io.BytesIO(b"no zip")
    upload.name = "mine.npz"
    with pytest.raises(TraceError, match=r"^mine\.npz is damaged or not a trace file"):
        load_trace(upload)


def test_unknown_ranks_and_impossible_tokens_come_back(hello):
    """No recorded rank, and a probability of 0, whose logarithm JSON cannot hold."""
    steps = (dataclasses.replace(hello.steps[0], rank=None, probability=0.0, log_probability=-math.inf), *hello.steps[1:])
    loaded = load_bytes(to_bytes(dataclasses.replace(hello, steps=steps)))
    assert loaded.steps == steps
