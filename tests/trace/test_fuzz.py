"""Files that would take more memory than they may, each in a process of its own: refused, or read within the bound."""

import io
import json
import os
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trace.conftest import load_bytes, members_of, zip_of
from transformer_viz import Trace
from transformer_viz.trace.store import to_bytes

ROOT = Path(__file__).resolve().parents[2]
MOST = 64 * 2**20
"""What the files of the memory tests may unpack to."""
BOUND = 4 * MOST
"""What `trace/store.py` promises: four times that."""


def run(*arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


MEASURED = """
import json, sys
from tests.memory import peak
from transformer_viz.errors import TraceError
from transformer_viz.trace.store import load_trace
try:
    load_trace(sys.argv[2])
except TraceError:
    pass
before = peak()
try:
    load_trace(sys.argv[1], max_bytes=int(sys.argv[3]), max_unpacked=int(sys.argv[3]))
    said = "loaded"
except TraceError as error:
    said = str(error)
print(json.dumps({"said": said, "grown": peak() - before}))
"""


@pytest.fixture
def measured(saved, tmp_path):
    """`measured(data)`: what is said of a file, and how many bytes of memory reading it took at most."""
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is measured on Linux only")

    def measure(data: bytes) -> dict[str, Any]:
        (tmp_path / "file.npz").write_bytes(data)
        (tmp_path / "good.npz").write_bytes(saved)
        return run("-c", MEASURED, str(tmp_path / "file.npz"), str(tmp_path / "good.npz"), str(MOST))

    return measure


def test_a_member_that_says_less_than_it_holds(saved, measured):
    """A deflate stream of 1 GiB whose directory says 1000 bytes. `ZipExtFile.read()` without a size unpacks all of it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    # After a full flush a block says nothing of those before: the same one can come again and again.
    stream = (packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)) * 1024 + packer.flush()
    unpacked = zlib.decompressobj(-15)
    assert len(unpacked.decompress(stream, 2**21)) == 2**21
    parts = {**members_of(saved), "attentions/cross/weights.npy": bytes(1000)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, stream if name == "attentions/cross/weights.npy" else content)
    data = bytearray(buffer.getvalue())
    crc, size = zlib.crc32(bytes(1000)).to_bytes(4, "little"), len(stream).to_bytes(4, "little")
    for signature, method, sizes in ((b"PK\x03\x04", 8, 14), (b"PK\x01\x02", 10, 16)):
        at = data.index(signature)
        while data[at:].find(b"attentions/cross/weights.npy", 0, 80) < 0:
            at = data.index(signature, at + 4)
        data[at + method : at + method + 2] = (8).to_bytes(2, "little")
        data[at + sizes : at + sizes + 12] = crc + size + (1000).to_bytes(4, "little")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo("attentions/cross/weights.npy")
        assert (info.file_size, info.compress_size, info.compress_type) == (1000, len(stream), zipfile.ZIP_DEFLATED)
    done = measured(bytes(data))
    assert "not an array" in done["said"]
    assert done["grown"] < 32 * 2**20


@pytest.mark.parametrize(
    "filler", ["[],", '"😀",', *(pytest.param(filler, marks=pytest.mark.slow) for filler in ("{},", '"ab",', "1.5,"))]
)
def test_a_description_that_grows_in_memory(saved, measured, filler):
    """As large as a description may be; empty lists take twenty times the memory of their text."""
    n = (MOST // 16 - 200) // len(filler.encode())
    text = '{"format": 1, "mistake": null, "steps": [' + filler * n + "0]}"
    done = measured(zip_of({**members_of(saved), "meta.json": text.encode()}))
    assert "is not a trace" in done["said"]
    assert done["grown"] < BOUND


def test_an_honest_large_file(measured):
    """27 MiB of attention."""
    n = 709
    done = measured(to_bytes(Trace.from_arrays(encoder=np.full((1, 14, n, n), 1 / n), source_tokens=["x"] * n)))
    assert done["said"] == "loaded"
    assert 26 * 2**20 < done["grown"] < BOUND


def test_a_directory_of_very_many_members(measured):
    """Twenty megabytes of names: zipfile would make an object of half a kilobyte for each before anyone could count them."""
    n = 300_000
    entry = b"PK\x01\x02" + bytes(24) + (8).to_bytes(2, "little") + bytes(16)
    names = [b"%08d" % number for number in range(n)]
    directory = b"".join(entry + name for name in names)
    for said_members in (n % 65536, 3):
        end = b"PK\x05\x06" + bytes(4) + said_members.to_bytes(2, "little") * 2 + len(directory).to_bytes(4, "little")
        done = measured(directory + end + bytes(4) + bytes(2))
        assert "more members than a trace" in done["said"]
        assert done["grown"] < 4 * 2**20


def test_the_large_form_of_a_directory_is_refused(saved):
    """Zip64's own end record would replace the numbers that were checked."""
    locator = b"PK\x06\x07" + bytes(16)
    with pytest.raises(Exception, match="more members than a trace"):
        load_bytes(saved[:-22] + locator + saved[-22:])
