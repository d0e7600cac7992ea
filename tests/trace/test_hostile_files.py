"""A hostile trace file is a TraceError and nothing else, and takes no more memory than it may.

`tests/fuzz` damages files by chance, `test_damaged_json.py` the values in their description.
"""

import io
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trace import planted
from tests.trace.conftest import is_refused, load_bytes, members_of, zip_of
from transformer_viz import Trace, load_trace
from transformer_viz.errors import TraceError
from transformer_viz.trace import store
from transformer_viz.trace.store import to_bytes

ENCODER, CROSS = "attentions/encoder/weights.npy", "attentions/cross/weights.npy"


def npy(header: bytes, body: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + body


def npy_of(kind: str, shape: str, body: bytes = b"") -> bytes:
    return npy(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n".encode(), body)


def stored(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


OTHERS = [b"", b"PK", b"hi", b"\x93NUMPY\x01\x00", b"\x80\x04N.", b"PK\x05\x06" + bytes(18)]


@pytest.mark.parametrize("given", [3, None, ["a"], io.StringIO("text"), "a\0b", "nowhere.npz", Path(), *OTHERS])
def test_what_is_no_trace_file(given):
    with pytest.raises(TraceError):
        load_trace(given)


def test_the_name_of_a_file_is_in_the_message():
    upload = io.BytesIO(b"no zip")
    upload.name = "mine.npz"
    with pytest.raises(TraceError, match=r"^mine\.npz is damaged or not a trace file"):
        load_trace(upload)
    with pytest.raises(TraceError, match=r"no file.*nowhere\.npz"):
        load_trace("nowhere.npz")


def test_every_byte_of_the_directory_changed(saved):
    """The end of a zip is its directory: methods, flags, sizes and offsets all lie there. Each byte gets one of the values."""
    start = saved.rindex(b"PK\x01\x02", 0, saved.rindex(b"PK\x01\x02"))
    for place in range(start, len(saved)):
        value = (0, 1, 12, 14, 99, 0x7F, 0xFF)[place % 7]
        is_refused(saved[:place] + bytes([value]) + saved[place + 1 :])


HEADERS = [
    *(npy_of("<f4", shape) for shape in ("10**9, 10**9", "4611686018427387904, 4, 1, 1", "99999999999999999999, 0, 3")),
    *(npy_of("<f4", shape) for shape in ("-1, 5, 7, 7", "True, 5, 7, 7", "", "7", "2L, 5L, 7L, 7L")),
    *(npy_of(kind, "2, 5, 7, 7") for kind in (">f4", "<f8", "|O", "f4,f4", "a", "<c8")),
    npy(b"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 5, 7, 7), }"),
    npy(b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 5, 7, 7), }"),
    npy(b"{'descr': [()], 'fortran_order': False, 'shape': (2, 5, 7, 7), }"),
    npy(b"{'descr': '<f4', 'fortran_order': False}"),
    *map(npy, (b"{'descr': '<f4'", b"{'a': '''", b"\n  x\n y", b"(" * 9000, b"-" * 9000 + b"1", b"[" * 90 + b"]" * 90)),
    *map(npy, (b"1" * 9000, b"x" * 20000, b"__import__('os').system('true')", b"\xff\xfe\x00", b"")),
    *(b"\x93NUMPY" + version for version in (b"\x02\x00", b"\x03\x00", b"\x09\x00", b"")),
]


@pytest.mark.parametrize("header", HEADERS, ids=lambda h: repr(h[10:80]))
def test_headers_that_lie(saved, header):
    """Absurd shapes must not take memory or overflow to a small size; nothing in a header is evaluated."""
    parts = members_of(saved)
    assert is_refused(zip_of({**parts, ENCODER: header + parts[ENCODER][128:]}))


def test_pickles_are_never_opened(saved, tmp_path):
    """A pickled object that would write a file when it is read."""
    witness = tmp_path / "was here"

    class Bomb:
        def __reduce__(self):
            return (open, (str(witness), "w"))

    array = io.BytesIO()
    np.save(array, np.array([Bomb()], dtype=object), allow_pickle=True)
    for name, content in ((ENCODER, array.getvalue()), ("meta.json", pickle.dumps(Bomb()))):
        assert is_refused(zip_of({**members_of(saved), name: content}))
    assert is_refused(pickle.dumps(Bomb()))
    assert not witness.exists()


FULL = members_of(to_bytes(planted.with_results(planted.grouped(planted.search((0, 4), has_source=True)))))
"""A run with a search, groups, attributions and insides."""
NOT_THERE = "which does not belong there"


@pytest.mark.parametrize(
    ("member", "array", "words"),
    [
        *((f"{name}.npy", np.zeros(3), NOT_THERE) for name in ("extra", "../../evil", "/etc/passwd", "a/meta", "META", "é")),
        *((f"groups/{name}.npy", np.zeros(3), NOT_THERE) for name in ("other/arrays/a", "../a", "a", "unheard_of/arrays/A")),
        ("groups/unheard_of/arrays/a/b.npy", np.zeros(3), NOT_THERE),
        ("groups/unheard_of/arrays/of_0.npy", npy_of("<f4", "3, 5", bytes(20)), "groups"),
        ("groups/unheard_of/arrays/of_0.npy", npy_of("|O", "5,", bytes(20)), "groups"),
        ("groups/unheard_of/arrays/of_0.npy", npy_of("<f4", "1, 1, 1, 1, 1, 1, 5", bytes(20)), "groups"),
        ("insides/0/query.npy", None, r"insides\[0\] lacks 'query'"),
        ("insides/0/query.npy", np.zeros(5, np.int32), r"insides\[0\]: query is int32 \(5,\); \(d_k\), float32 or float64"),
        ("insides/0/query.npy", np.zeros((5, 1)), r"query is float64 \(5, 1\)"),
        ("insides/0/output.npy", np.zeros(9), "output has 9 d_v where others have"),
        ("insides/0/reasons.npy", np.zeros(99, np.uint8), r"reasons are uint8 \(99,\)"),
        ("insides/0/reasons.npy", np.full(3, 77, np.uint8), "reasons holds code 77"),
        *((f"insides/{name}.npy", np.zeros(5), NOT_THERE) for name in ("0/unheard_of", "7/query", "0/run/query")),
        ("attributions/occlusion_word_cross/values.npy", None, "lacks 'values'"),
        ("attributions/occlusion_word_cross/values.npy", np.zeros(3), "is float64 with 1 axes"),
        ("attributions/occlusion_word_cross/notes.npy", np.zeros(3), NOT_THERE),
    ],
)
def test_members_that_do_not_fit(member: str, array: np.ndarray | bytes | None, words: str) -> None:
    parts = {name: part for name, part in FULL.items() if name != member}
    if array is not None:
        parts[member] = array if isinstance(array, bytes) else stored(array)
    with pytest.raises(TraceError, match=words):
        load_bytes(zip_of(parts, zipfile.ZIP_STORED))


def test_members_twice_or_missing(saved):
    parts = members_of(saved)
    for name, content in parts.items():
        assert is_refused(zip_of({n: c for n, c in parts.items() if n != name}))
        with pytest.warns(UserWarning, match="Duplicate"):
            twice = zip_of([*parts.items(), (name, content)])
        assert is_refused(twice)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_read_or_refused(saved, compression):
    data = zip_of(members_of(saved), compression)
    is_refused(data)
    for end in range(len(data) // 5, len(data), 293):
        broken = bytearray(data)
        broken[end] ^= 0xFF
        is_refused(bytes(broken))


# Memory


def test_a_bomb_is_refused_before_it_is_unpacked(saved, monkeypatch):
    monkeypatch.setattr(store, "LARGEST", 100_000)
    bomb = zip_of({**members_of(saved), CROSS: bytes(10**6)})
    assert len(bomb) < 100_000
    with pytest.raises(TraceError, match="unpacks to more than"):
        load_bytes(bomb)


@pytest.mark.parametrize(
    ("name", "kind", "shape"),
    [
        ("attentions/cross/weights", "<f4", ""),
        ("attentions/cross/scores", "<f4", "2, 2, 2048, 1024"),
        ("attentions/decoder/reasons", "|u1", "8192, 4096"),
        ("search/decoder_rows", "<f4", "1, 2, 2, 2097152"),
        ("groups/mine/arrays/array", "<f4", "2097152, 4"),
    ],
)
def test_zeros_without_a_place_are_refused_before_they_are_unpacked(saved_search, name, kind, shape):
    """32 MB of them, of no array or of one that does not fit the run, take next to no memory."""
    parts = {member: content for member, content in members_of(saved_search).items() if member != f"{name}.npy"}
    buffer = io.BytesIO(zip_of(parts))
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(f"{name}.npy", (npy_of(kind, shape) if shape else b"") + bytes(2**25))
    tracemalloc.start()
    try:
        with pytest.raises(TraceError) as caught:
            load_bytes(buffer.getvalue())
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    assert name.split("/")[1].split("_")[0] in str(caught.value)


MB = 2**20
MOST = 64 * MB
"""What the files of the memory test may unpack to; `trace/store.py` promises that reading takes at most four times that."""
MEASURED = """
import json, sys
from tests.memory import forget_peak, peak
from transformer_viz.errors import TraceError
from transformer_viz.trace.store import load_trace
load_trace("good.npz")
for name in sys.argv[2:]:
    before = forget_peak()
    try:
        load_trace(name, max_bytes=int(sys.argv[1]), max_unpacked=int(sys.argv[1]))
        said = "loaded"
    except TraceError as error:
        said = str(error)
    print(json.dumps([said, peak() - before]))
"""


def of_a_lying_size(saved: bytes) -> bytes:
    """A deflate stream of 1 GiB whose directory says 1000 bytes. `ZipExtFile.read()` without a size unpacks all of it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    # After a full flush a block says nothing of those before: the same one can come again and again.
    stream = (packer.compress(bytes(MB)) + packer.flush(zlib.Z_FULL_FLUSH)) * 1024 + packer.flush()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in {**members_of(saved), CROSS: stream}.items():
            archive.writestr(name, content)
    data = bytearray(buffer.getvalue())
    crc, size = zlib.crc32(bytes(1000)).to_bytes(4, "little"), len(stream).to_bytes(4, "little")
    for signature, method, sizes, name in ((b"PK\x03\x04", 8, 14, 30), (b"PK\x01\x02", 10, 16, 46)):
        at = data.index(signature)
        while data[at + name : at + name + len(CROSS)] != CROSS.encode():
            at = data.index(signature, at + 4)
        data[at + method : at + method + 2] = (8).to_bytes(2, "little")
        data[at + sizes : at + sizes + 12] = crc + size + (1000).to_bytes(4, "little")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo(CROSS)
        assert (info.file_size, info.compress_size, info.compress_type) == (1000, len(stream), zipfile.ZIP_DEFLATED)
    return bytes(data)


def of_many_members(said: int) -> bytes:
    """Twenty megabytes of names: zipfile would make an object of half a kilobyte for each before anyone could count them."""
    entry = b"PK\x01\x02" + bytes(24) + (8).to_bytes(2, "little") + bytes(16)
    directory = b"".join(entry + b"%08d" % number for number in range(300_000))
    end = b"PK\x05\x06" + bytes(4) + said.to_bytes(2, "little") * 2 + len(directory).to_bytes(4, "little")
    return directory + end + bytes(4) + bytes(2)


def described_by(saved: bytes, filler: str) -> bytes:
    """A description as large as one may be; empty lists take twenty times the memory of their text."""
    text = '{"format": 1, "steps": [' + filler * ((MOST // 16 - 200) // len(filler.encode())) + "0]}"
    return zip_of({**members_of(saved), "meta.json": text.encode()})


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured on Linux only")
def test_no_file_takes_more_memory_than_it_may(saved, tmp_path):
    """Each refused, or read within the bound, in a process of their own."""
    n = 709
    large = to_bytes(Trace.from_arrays(encoder=np.full((1, 14, n, n), 1 / n), source_tokens=["x"] * n))
    files: list[tuple[bytes, str, float]] = [
        (of_a_lying_size(saved), "not an array", 32 * MB),
        (of_many_members(300_000 % 65536), "more members than a trace", 4 * MB),
        (of_many_members(3), "more members than a trace", 4 * MB),
        *((described_by(saved, filler), "is not a trace", 4 * MOST) for filler in ("[],", '"😀",')),
        (large, "loaded", 4 * MOST),
    ]
    for i, data in enumerate([saved, *(data for data, _, _ in files)]):
        (tmp_path / (f"{i}.npz" if i else "good.npz")).write_bytes(data)
    names = [f"{i}.npz" for i in range(1, len(files) + 1)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "OPENBLAS_NUM_THREADS": "1"}
    command: list[Any] = [sys.executable, "-W", "error", "-c", MEASURED, str(MOST), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for line, name, (_, words, most) in zip(done.stdout.splitlines(), names, files, strict=True):
        said, grown = json.loads(line)
        assert words in said, (name, said)
        assert grown < most, (name, grown)
    assert grown > 26 * MB, "what an honest file of 27 MiB holds"


def test_the_large_form_of_a_directory_is_refused(saved):
    """Zip64's own end record would replace the numbers that were checked."""
    locator = b"PK\x06\x07" + bytes(16)
    with pytest.raises(TraceError, match="more members than a trace"):
        load_bytes(saved[:-22] + locator + saved[-22:])
