"""A hostile trace file is a TraceError and nothing else."""

import io
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest

from tests.trace.conftest import is_refused, load_bytes, members_of, zip_of
from transformer_viz import load_trace
from transformer_viz.errors import TraceError


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(TraceError, match=r"no file.*nowhere\.npz"):
        load_trace(tmp_path / "nowhere.npz")
    with pytest.raises(TraceError):
        load_trace(tmp_path)


@pytest.mark.parametrize("data", [b"", b"PK", b"hi", b"\x93NUMPY\x01\x00", b"\x80\x04N.", b"PK\x05\x06" + bytes(18)], ids=str)
def test_files_of_another_kind(data):
    assert is_refused(data)


def test_every_byte_of_the_directory_changed(saved):
    """The end of a zip is its directory: methods, flags, sizes and offsets all lie there. Each byte gets one of the values."""
    start = saved.rindex(b"PK\x01\x02")
    start = saved.rindex(b"PK\x01\x02", 0, start)
    for place in range(start, len(saved)):
        value = (0, 1, 12, 14, 99, 0x7F, 0xFF)[place % 7]
        is_refused(saved[:place] + bytes([value]) + saved[place + 1 :])


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
    body = members_of(saved)["attentions/encoder/weights.npy"][128:]
    assert is_refused(zip_of({**members_of(saved), "attentions/encoder/weights.npy": npy(header, body)}))


@pytest.mark.parametrize("version", [b"\x02\x00", b"\x03\x00", b"\x09\x00", b""])
def test_other_array_layouts(saved, version):
    parts = members_of(saved)
    parts["attentions/encoder/weights.npy"] = b"\x93NUMPY" + version + parts["attentions/encoder/weights.npy"][8:]
    assert is_refused(zip_of(parts))


def test_pickles_are_never_opened(saved, tmp_path):
    """A pickled object that would write a file when it is read."""
    witness = tmp_path / "was here"

    class Bomb:
        def __reduce__(self):
            return (open, (str(witness), "w"))

    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    assert is_refused(zip_of({**members_of(saved), "attentions/encoder/weights.npy": buffer.getvalue()}))
    assert is_refused(zip_of({**members_of(saved), "meta.json": pickle.dumps(Bomb())}))
    assert is_refused(pickle.dumps(Bomb()))
    assert not witness.exists()


@pytest.mark.parametrize(
    "name", ["extra.npy", "../../evil.npy", "/etc/passwd", "a/meta.json", "META.JSON", "attentions/encoder/weights", "é"]
)
def test_members_that_do_not_belong_there(saved, name):
    parts = members_of(saved)
    data = zip_of({**parts, name: parts["meta.json"]})
    with pytest.raises(TraceError) as caught:
        load_bytes(data)
    assert repr(name) in str(caught.value)


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
    for end in range(len(data) // 5, len(data), 97):
        broken = bytearray(data)
        broken[end] ^= 0xFF
        is_refused(bytes(broken))


def test_a_bomb_is_refused_before_it_is_unpacked(saved, monkeypatch):
    from transformer_viz.trace import store

    monkeypatch.setattr(store, "LARGEST", 100_000)
    bomb = zip_of({**members_of(saved), "attentions/cross/weights.npy": bytes(10**6)})
    assert len(bomb) < 100_000
    with pytest.raises(TraceError, match="unpacks to more than"):
        load_bytes(bomb)


def zeros(parts: dict[str, bytes], name: str, header: bytes, n_bytes: int) -> bytes:
    """A file of these members but for one, which is a header and so many zeros."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as after:
        for member, content in parts.items():
            if member != name:
                after.writestr(member, content)
        with after.open(name, "w") as member:
            member.write(header)
            for _ in range(n_bytes // 2**20):
                member.write(bytes(2**20))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("attentions/cross/weights", ""),
        ("attentions/cross/weights", "2, 2, 2048, 1024"),
        ("attentions/cross/scores", "2, 2, 2048, 1024"),
        ("attentions/decoder/reasons", "8192, 4096"),
        ("search/decoder_rows", "1, 2, 2, 2097152"),
        ("search/cross_rows", "2097152, 2, 2, 1"),
        ("groups/mine/arrays/array", "2097152, 4"),
    ],
    ids=str,
)
def test_zeros_without_a_place_are_refused_before_they_are_unpacked(saved_search, name, shape):
    """32 MB of them, of no array or of one that does not fit the run, take next to no memory."""
    of = "|u1" if "reasons" in name else "<f4"
    header = f"{{'descr': '{of}', 'fortran_order': False, 'shape': ({shape}), }}\n".encode()
    bomb = zeros(members_of(saved_search), f"{name}.npy", npy(header) if shape else b"", 2**25)
    tracemalloc.start()
    try:
        with pytest.raises(TraceError) as caught:
            load_bytes(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    assert name.split("/")[1].split("_")[0] in str(caught.value)
