"""Trace files: the same bits come back, without torch; a hostile file is a TraceError and nothing else."""

import copy
import dataclasses
import io
import json
import pickle
import random
import subprocess
import sys
import zipfile
from typing import Any

import numpy as np
import pytest

from transformer_viz import decode, load_trace
from transformer_viz.errors import TraceError
from transformer_viz.trace.search import Search
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace

KINDS = ("encoder", "decoder", "cross")


def load(data: bytes) -> Trace:
    return load_trace(io.BytesIO(data))


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: dict[str, bytes] | list[tuple[str, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(name, content)
    return buffer.getvalue()


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit, arrays within and searches included."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, Trace | Search):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[key], b[key]) for key in a)
    return a == b


def refused_or_sound(data: bytes) -> bool:
    """Whether the file was refused; what is not refused must be whole enough to look at and to save again."""
    try:
        trace = load(data)
    except TraceError:
        return True
    assert isinstance(trace, Trace)
    trace.to_frame()
    assert same(load(to_bytes(trace)), trace)
    return False


@pytest.fixture(scope="module")
def saved(hello) -> bytes:
    return to_bytes(hello)


@pytest.fixture(scope="module")
def saved_search(tiny) -> bytes:
    return to_bytes(decode(tiny, "hello", strategy="beam", beam_size=2, max_length=4))


# Round trips


def test_the_same_bits_come_back(hello, tmp_path):
    path = tmp_path / "hello.npz"
    hello.save(path)
    loaded = load_trace(path)
    assert same(loaded, hello)
    assert load_trace(str(path)).steps == hello.steps
    for kind in KINDS:
        with pytest.raises(ValueError, match="read-only"):
            loaded.attentions(kind)[0] = 0  # ty: ignore[invalid-assignment]


def test_unusual_traces_come_back(hello, tiny):
    """Padding, masks by head, NaN of a named mistake, missing kinds, no answer, sampling, odd letters."""
    reasons = np.zeros(hello.cross_attentions.shape, np.uint8)
    reasons[1, 2, 0, 3] = 4
    nan = np.full_like(hello.cross_attentions, np.nan)
    changes: list[dict[str, Any]] = [
        {"mask_reasons": {**hello.mask_reasons, "cross": reasons}},
        {"cross_attentions": nan, "mistake": "no mask"},
        {"encoder_attentions": None, "mask_reasons": {k: hello.mask_reasons[k] for k in ("decoder", "cross")}},
        {"expected": None, "expected_tokens": None},
        {"steps": tuple(dataclasses.replace(s, sampling_probability=0.25, rank=3) for s in hello.steps)},
        {"source": "é\u202e\x00😀", "text": "<b>$x$", "source_tokens": ("😀", "\u0301", "\n", "\\", '"', "", "␣")},
    ]
    for trace in [dataclasses.replace(hello, **change) for change in changes[:1] + changes[2:]] + [
        decode(tiny, "he", pad_to=11)
    ]:
        assert same(load(to_bytes(trace)), trace)
    mistaken = load(to_bytes(dataclasses.replace(hello, **changes[1])))
    assert mistaken.mistake == "no mask"
    assert mistaken.cross_attentions is not None
    assert np.isnan(mistaken.cross_attentions).all()


def test_two_saves_are_the_same_bytes(hello, saved):
    assert to_bytes(hello) == saved
    assert to_bytes(load(saved)) == saved
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        assert {info.date_time for info in archive.infolist()} == {(2017, 6, 12, 0, 0, 0)}, "no clock in the file"


def test_numpy_reads_the_arrays_without_pickle(hello, saved):
    """It is a plain `.npz`: others can read it without this package."""
    with np.load(io.BytesIO(saved), allow_pickle=False) as archive:
        for kind in KINDS:
            assert archive[f"{kind}_attentions"].tobytes() == hello.attentions(kind).tobytes()
            assert archive[f"{kind}_mask_reasons"].tolist() == hello.mask_reasons[kind].tolist()
    meta = json.loads(members(saved)["meta.json"])
    assert meta["format"] == 1
    assert meta["source_tokens"] == list(hello.source_tokens)


def test_loads_where_torch_cannot_be_imported(hello, tmp_path):
    path = tmp_path / "hello.npz"
    hello.save(path)
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
    print(kind, hashlib.sha256(trace.attentions(kind).tobytes() + trace.masks[kind].tobytes()).hexdigest())
print(len(trace.to_frame()))
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    import hashlib

    want = [
        f"{kind} {hashlib.sha256(hello.attentions(kind).tobytes() + hello.masks[kind].tobytes()).hexdigest()}" for kind in KINDS
    ]
    assert done.stdout.split("\n")[:4] == [*want, str(len(hello.to_frame()))]


# Hostile files


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(TraceError, match=r"no file.*nowhere\.npz"):
        load_trace(tmp_path / "nowhere.npz")
    with pytest.raises(TraceError):
        load_trace(tmp_path)


@pytest.mark.parametrize("data", [b"", b"PK", b"hello", b"\x93NUMPY\x01\x00", b"\x80\x04N.", zipped({})], ids=repr)
def test_files_of_another_kind(data):
    assert refused_or_sound(data)


def test_truncated_anywhere(saved):
    for end in range(0, len(saved), max(1, len(saved) // 300)):
        assert refused_or_sound(saved[:end]), end


def test_random_bytes_changed_in_the_file(saved):
    rng = random.Random(0)
    refused = 0
    for _ in range(500):
        data = bytearray(saved)
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        refused += refused_or_sound(bytes(data))
    assert refused > 250


def test_every_byte_of_the_directory_changed(saved):
    """The end of a zip is its directory: methods, flags, sizes and offsets all lie there."""
    start = saved.rindex(b"PK\x01\x02")
    start = saved.rindex(b"PK\x01\x02", 0, start)
    for place in range(start, len(saved)):
        for value in (0, 1, 12, 14, 99, 0x7F, 0xFF):
            refused_or_sound(saved[:place] + bytes([value]) + saved[place + 1 :])


def test_random_bytes_changed_inside_the_members(saved):
    """With a correct checksum, so that it reaches our own reading of arrays and JSON."""
    rng, parts = random.Random(1), members(saved)
    refused = 0
    for _ in range(500):
        name = rng.choice(sorted(parts))
        content = bytearray(parts[name])
        for _ in range(rng.choice((1, 1, 2, 5))):
            content[rng.randrange(min(len(content), 200 if name.endswith(".npy") else len(content)))] = rng.randrange(256)
        refused += refused_or_sound(zipped({**parts, name: bytes(content)}, zipfile.ZIP_STORED))
    assert refused > 100


def npy(header: bytes, body: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + body


HEADERS = [
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (10**9, 10**9), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4, 1, 1), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 99999999999999999999, 0, 3), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 5, 7, 7), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (True, 5, 7, 7), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': 7, }",
    b"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 5, 7, 7), }",
    b"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 5, 7, 7), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 5, 7, 7), }",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (2, 5, 7, 7), }",
    b"{'descr': (), 'fortran_order': False, 'shape': (2, 5, 7, 7), }",
    b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 5, 7, 7), }",
    b"{'descr': [()], 'fortran_order': False, 'shape': (2, 5, 7, 7), }",
    b"{'descr': 'f4,f4', 'fortran_order': False, 'shape': (2, 5, 7, 7), }",
    b"{'descr': 'a', 'fortran_order': False, 'shape': (2, 5, 7, 7), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 5L, 7L, 7L), }",
    b"{'descr': '<f4', 'fortran_order': False}",
    b"{'descr': '<f4'",
    b"{'a': '''",
    b"(((((((((((((((((((",
    b"\n  x\n y",
    b"(" * 9000,
    b"-" * 9000 + b"1",
    b"[" * 90 + b"]" * 90,
    b"1" * 9000,
    b"x" * 20000,
    b"__import__('os').system('true')",
    b"\xff\xfe\x00",
    b"",
]


@pytest.mark.parametrize("header", HEADERS, ids=lambda h: repr(h[:60]))
def test_headers_that_lie(saved, header):
    """Absurd shapes must not take memory or overflow to a small size; nothing in a header is evaluated."""
    body = members(saved)["encoder_attentions.npy"][128:]
    assert refused_or_sound(zipped({**members(saved), "encoder_attentions.npy": npy(header, body)}))


@pytest.mark.parametrize("version", [b"\x02\x00", b"\x03\x00", b"\x09\x00", b""])
def test_other_array_layouts(saved, version):
    parts = members(saved)
    parts["encoder_attentions.npy"] = b"\x93NUMPY" + version + parts["encoder_attentions.npy"][8:]
    assert refused_or_sound(zipped(parts))


def test_pickles_are_never_opened(saved, tmp_path):
    """A pickled object that would write a file when it is read."""
    witness = tmp_path / "was here"

    class Bomb:
        def __reduce__(self):
            return (open, (str(witness), "w"))

    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    assert refused_or_sound(zipped({**members(saved), "encoder_attentions.npy": buffer.getvalue()}))
    assert refused_or_sound(zipped({**members(saved), "meta.json": pickle.dumps(Bomb())}))
    assert refused_or_sound(pickle.dumps(Bomb()))
    assert not witness.exists()


@pytest.mark.parametrize(
    "name", ["extra.npy", "../../evil.npy", "/etc/passwd", "a/meta.json", "META.JSON", "encoder_attentions", "é"]
)
def test_members_that_do_not_belong_there(saved, name):
    parts = members(saved)
    data = zipped({**parts, name: parts["meta.json"]})
    with pytest.raises(TraceError) as caught:
        load(data)
    assert repr(name) in str(caught.value)


def test_members_twice_or_missing(saved):
    parts = members(saved)
    for name, content in parts.items():
        assert refused_or_sound(zipped({n: c for n, c in parts.items() if n != name}))
        with pytest.warns(UserWarning, match="Duplicate"):
            twice = zipped([*parts.items(), (name, content)])
        assert refused_or_sound(twice)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_read_or_refused(saved, compression):
    data = zipped(members(saved), compression)
    refused_or_sound(data)
    for end in range(len(data) // 5, len(data), 97):
        broken = bytearray(data)
        broken[end] ^= 0xFF
        refused_or_sound(bytes(broken))


def test_a_bomb_is_refused_before_it_is_unpacked(saved, monkeypatch):
    from transformer_viz.trace import store

    monkeypatch.setattr(store, "LARGEST", 100_000)
    bomb = zipped({**members(saved), "cross_attentions.npy": bytes(10**6)})
    assert len(bomb) < 100_000
    with pytest.raises(TraceError, match="unpacks to more than"):
        load(bomb)


@pytest.mark.parametrize("number", [0, 2, 99, None, "1", -1, [1]], ids=repr)
def test_other_formats_are_named(saved, number):
    parts = members(saved)
    meta = json.loads(parts["meta.json"]) | {"format": number}
    with pytest.raises(TraceError, match=r"format 1.*update") as caught:
        load(zipped({**parts, "meta.json": json.dumps(meta).encode()}))
    assert repr(number) in str(caught.value)


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """Every place in a JSON value; of long lists the first and last entry."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, list):
        for i in sorted({0, len(value) - 1} & set(range(len(value)))):
            found += places(value[i], (*path, i))
    return found


def changed(meta: Any, path: tuple, text: str) -> bytes:
    """`meta` as JSON with the value at `path` replaced by the JSON text `text`; "" deletes it."""
    meta = copy.deepcopy(meta)
    parent = meta
    for key in path[:-1]:
        parent = parent[key]
    if text:
        parent[path[-1]] = "@@@"
    else:
        del parent[path[-1]]
    return json.dumps(meta).replace('"@@@"', text).encode()


JSON_TEXTS = [
    "",
    "null",
    "true",
    "-1",
    "3",
    "1e999",
    "NaN",
    "1" + "0" * 400,
    "1" * 5000,
    '"x"',
    '"\\ud800"',
    "[]",
    "[[1]]",
    "{}",
    '{"a": NaN}',
    "[" * 3000 + "]" * 3000,
]


@pytest.mark.parametrize("which", ["saved", "saved_search"])
def test_every_place_of_the_description_with_every_wrong_value(which, request):
    """About two thousand files: always a TraceError, or a trace that can be looked at and saved again."""
    parts = members(request.getfixturevalue(which))
    meta = json.loads(parts["meta.json"])
    meta["steps"] = meta["steps"][:1] * len(meta["steps"])
    arrays = {name: content for name, content in parts.items() if name != "meta.json"}
    tried = refused = 0
    for path in places(meta):
        for text in JSON_TEXTS:
            data = zipped({**arrays, "meta.json": changed(meta, path, text)}, zipfile.ZIP_STORED)
            tried += 1
            refused += refused_or_sound(data)
    assert tried > 500
    assert refused > tried // 2


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "3", '"x"', "{", "[" * 100_000, '{"format": 1}', "\xff"], ids=lambda t: t[:20]
)
def test_descriptions_that_are_none(saved, text):
    assert refused_or_sound(zipped({**members(saved), "meta.json": text.encode("latin1")}))
