"""A trace as a file: a zip of plain `.npy` arrays and one `meta.json`, the layout of numpy's `.npz`.

Reading trusts nothing: members, sizes, types and shapes are checked before an array is unpacked,
and arrays are taken from bytes, never unpickled.

Memory: a file that unpacks to n bytes takes at most about 4 n while it is read (an array while it is
unpacked, then checks of it; the description, at most n / 16, as Python objects). A file that says it
unpacks to more than allowed is refused before, one that says less than it holds is not read further.
"""

import io
import json
import math
import re
import struct
import sys
import zipfile
import zlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from transformer_viz import reading
from transformer_viz.errors import TraceError, TraceTooLargeHere, TransformerVizError, listed
from transformer_viz.terms import KINDS, Reason
from transformer_viz.trace import groups
from transformer_viz.trace.description import built, check_shapes, described
from transformer_viz.trace.search import Search
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import START
from transformer_viz.writing import write_bytes

FORMATS = (1, 2, 3)
"""A file is of the first format that can hold it: a program that knows earlier ones alone would read it wrongly, and refuses
it. The second has half precision, chosen layers, and a search without the rows of a kind; the third a prompt, ids of tokens,
fills, windows, and groups."""
LARGEST = 2**30
"""The most bytes that a file may unpack to, and be on the disk, unless a caller sets less."""
_META_SHARE = 16
"""The description may be this part of what a file may unpack to: as Python objects it takes up to 25 times its bytes."""
_META = "meta.json"
_WEIGHTS = (np.dtype("<f4"), np.dtype("<f2"))
_DTYPES = {
    "attentions": _WEIGHTS,
    "mask_reasons": (np.dtype("u1"),),
    "scores": (np.dtype("<f4"),),
    "rows": _WEIGHTS,
    "search_reasons": (np.dtype("u1"),),
}
_OWN = frozenset(f"{kind}_{what}" for kind in KINDS for what in _DTYPES)
_IN_GROUPS = tuple(np.dtype(name).newbyteorder("<") for name in groups.DTYPES)
# What numpy writes before an array, and nothing else: its own parser evaluates literals and can fail in many ways.
_HEADER = re.compile(
    rb"\{'descr': '([<|][a-z]\d)', 'fortran_order': False, 'shape': \((\d{1,9}(?:, \d{1,9}){0,5}),?\), \} *\n", re.ASCII
)
_MAGIC = b"\x93NUMPY\x01\x00"
_LARGEST_HEADER = 1024
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_LOCATOR_SIZE, _END_SIZE = 20, 22
_MOST_MEMBERS, _LARGEST_DIRECTORY = 16 + groups.MOST_ARRAYS, 2**14
# A fixed date, so that two files of the same run are the same bytes.
_DATE = (2017, 6, 12, 0, 0, 0)


def save_trace(trace: Trace, path: str | PathLike[str]) -> None:
    """Writes `trace` to `path`, over what is there."""
    write_bytes(to_bytes(trace), Path(path))


def to_bytes(trace: Trace) -> bytes:
    """The file's content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in _arrays(trace).items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(_member(f"{name}.npy"), member.getvalue())
        meta = {"format": _format(trace), **described(trace)}
        archive.writestr(_member(_META), json.dumps(meta, ensure_ascii=False, allow_nan=False).encode())
    return buffer.getvalue()


def _format(trace: Trace) -> int:
    if _has_later_parts(trace):
        return 3
    lacks_rows = trace.search is not None and len(trace.search.rows) < 2
    has_layers = any(attention.layers != tuple(range(attention.n_layers)) for attention in trace.attentions.values())
    return 2 if trace.precision != "float32" or has_layers or lacks_rows else 1


def _has_later_parts(trace: Trace) -> bool:
    """Whether there is something that files of the first two formats cannot hold."""
    has_ids = any(ids is not None for ids in (trace.source_ids, trace.target_ids, trace.output_ids))
    has_ids = has_ids or any(step.token_id is not None or step.candidate_ids for step in trace.steps)
    has_window = any((attention.reasons == Reason.WINDOW).any() for attention in trace.attentions.values())
    is_later_search = trace.search is not None and _is_later(trace.search)
    return bool(trace.n_given or trace.fills or trace.groups) or has_ids or has_window or is_later_search


def _is_later(search: Search) -> bool:
    has_ids = bool(search.candidate_ids) or any(node.token_id is not None for node in search.nodes)
    has_rule = search.decoder_reasons is not None
    return has_ids or has_rule or search.opening != (START,) or search.opening_ids is not None


def load_trace(
    path: str | PathLike[str] | bytes | bytearray | memoryview | BinaryIO,
    *,
    max_bytes: int | None = None,
    max_unpacked: int | None = None,
) -> Trace:
    """Reads a file that `save_trace` wrote.

    Args:
        path: a path, the file's bytes, or an open binary file that can seek, such as an upload.
        max_bytes: the most bytes that the file may have; 1 GiB by default.
        max_unpacked: the most bytes that it may unpack to; 1 GiB by default. Reading takes up to about 4 times as much.

    Raises:
        TraceError: not a trace, damaged, or of a later version.
        TraceTooLargeHere: a TraceError too, of a file that has or unpacks to more than allowed.
    """
    name = str(path if isinstance(path, str | PathLike) else getattr(path, "name", None) or "the file")[-200:]
    try:
        with _opened(path) as file:
            _check_end(file, LARGEST if max_bytes is None else max_bytes)
            with zipfile.ZipFile(file) as archive:
                return _read(archive, LARGEST if max_unpacked is None else max_unpacked)
    except FileNotFoundError:
        raise TraceError(f"There is no file {name}.") from None
    except TraceTooLargeHere as error:
        raise TraceTooLargeHere(f"{name} is too large: {error}.") from error
    except TransformerVizError as error:
        raise TraceError(f"{name} is not a trace that this program can read: {error}") from error
    except MemoryError:
        raise TraceError(f"{name} needs more memory than there is. Set max_unpacked to refuse such files at once.") from None
    except (OSError, zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise TraceError(f"{name} is damaged or not a trace file ({type(error).__name__}). Save or copy it again.") from error
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        words = f"{type(error).__name__}: {str(error)[:200]}"
        raise TraceError(f"{name} is not a trace file ({words}).") from error


def _opened(path: Any) -> AbstractContextManager[BinaryIO]:
    """An open file, closed afterwards if it was opened here."""
    if isinstance(path, bytes | bytearray | memoryview):
        return io.BytesIO(path)
    if not isinstance(path, str | PathLike):
        if not hasattr(path, "seek") or not hasattr(path, "read"):
            raise TraceError(f"a path, bytes or an open binary file is needed, not {type(path).__name__}")
        return nullcontext(path)
    return reading.opened(path, sys.maxsize)  # its size is compared as that of every other file


def _check_end(file: BinaryIO, max_bytes: int) -> None:
    """Size and directory of the zip, before zipfile reads it: it would make an object for each of millions of members."""
    size = file.seek(0, io.SEEK_END)
    if size > max_bytes:
        raise TraceTooLargeHere(f"it has {size:,} bytes; at most {max_bytes:,} are allowed")
    file.seek(max(0, size - _LOCATOR_SIZE - _END_SIZE))
    tail = file.read(_LOCATOR_SIZE + _END_SIZE)
    end, before = tail[-_END_SIZE:], tail[:-_END_SIZE]
    if len(end) < _END_SIZE or not end.startswith(b"PK\x05\x06") or end[-2:] != b"\0\0":
        raise zipfile.BadZipFile
    n_members, n_directory = struct.unpack("<HL", end[10:16])
    if before.startswith(b"PK\x06\x07") or n_members > _MOST_MEMBERS or n_directory > _LARGEST_DIRECTORY:
        raise TraceError(f"it has more members than a trace, which has at most {_MOST_MEMBERS}")


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _arrays(trace: Trace) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for kind, attention in trace.attentions.items():
        arrays[f"{kind}_attentions"] = _little(attention.weights)
        arrays[f"{kind}_mask_reasons"] = attention.reasons
        if attention.scores is not None:
            arrays[f"{kind}_scores"] = _little(attention.scores)
    if trace.search is not None:
        arrays |= {name: _little(array) for name, array in trace.search.arrays.items()}
    for group in sorted(trace.groups):
        arrays |= {f"{group}/{name}": _little(array) for name, array in sorted(trace.groups[group].arrays.items())}
    return arrays


def _little(array: np.ndarray) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _read(archive: zipfile.ZipFile, most: int) -> Trace:
    members = {info.filename: info for info in archive.infolist()}
    if unknown := sorted(name for name in members if name != _META and not _types(name)):
        raise TraceError(f"it holds {unknown[0][:60]!r}, which does not belong there")
    if _META not in members:
        raise TraceError(f"{_META} is missing")
    if len(archive.infolist()) != len(members):
        raise TraceError("a member stands in it twice")
    if any(info.compress_type not in _COMPRESSIONS for info in members.values()):
        raise TraceError("it is compressed in another way than this program does it")
    if sum(info.file_size for info in members.values()) > most:
        raise TraceTooLargeHere(f"it unpacks to more than {most / 2**20:.4g} MB")
    if members[_META].file_size > most // _META_SHARE:
        raise TraceTooLargeHere(f"its {_META} unpacks to more than {most / _META_SHARE / 2**20:.4g} MB")
    meta = reading.parsed(_unpacked(archive, members.pop(_META)))
    given = meta.get("format") if isinstance(meta, dict) else None
    if isinstance(given, bool) or given not in FORMATS:
        raise TraceError(
            f"its format is {repr(given)[:40]}, and this version reads formats {listed(FORMATS)}; update the program"
        )
    headers = {name: _header(archive, info) for name, info in members.items()}
    check_shapes(meta, {name: header.shape for name, header in headers.items()})
    trace = built(meta, {name: _array(archive, info, headers[name]) for name, info in members.items()})
    # Some files name the layers of a kind although they are those from 0 on.
    needed = max(_format(trace), 2 if meta.get("layers") else 1)
    if needed != given:
        raise TraceError(f"it says that it is of format {given}, and what it holds is of format {needed}")
    return trace


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, skipped: int = 0) -> bytes:
    """As many bytes as the directory says and no more, after the first ones: `read()` without a size would unpack whatever is
    there."""
    with archive.open(info) as member:
        member.read(skipped)
        data = member.read(info.file_size - skipped)
    if len(data) != info.file_size - skipped:
        raise TraceError(f"{info.filename} is shorter than the file's directory says")
    return data


def _types(member: str) -> tuple[np.dtype, ...]:
    """The types that a member's array may have; none for a member that does not belong there."""
    name, ending = member.removesuffix(".npy"), member[-len(".npy") :]
    if ending != ".npy":
        return ()
    if name in _OWN:
        return _DTYPES[name.split("_", 1)[1]]
    group, _, array = name.partition("/")
    return _IN_GROUPS if groups.is_name(group) and groups.is_name(array) else ()


@dataclass(frozen=True)
class _Header:
    """What an `.npy` member says of its array, and how many bytes it takes to say so."""

    dtype: np.dtype
    shape: tuple[int, ...]
    n_bytes: int


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Header:
    """Read before the array is unpacked; it must describe exactly as many bytes as the directory says are there."""
    name = info.filename
    allowed: dict[str, np.dtype] = {dtype.str: dtype for dtype in _types(name)}
    with archive.open(info) as member:
        start = member.read(len(_MAGIC) + 2)
        header = member.read(min(_LARGEST_HEADER, int.from_bytes(start[len(_MAGIC) :], "little")))
    found = _HEADER.fullmatch(header)
    if not start.startswith(_MAGIC) or found is None or found[1].decode() not in allowed:
        raise TraceError(f"{name} is not an array of {' or '.join(map(str, allowed.values()))} with one to six axes")
    dtype, shape = allowed[found[1].decode()], tuple(int(size) for size in found[2].split(b", "))
    n_bytes = len(start) + len(header)
    # Python's integers do not overflow, so an absurd shape cannot pass for a small one.
    if math.prod(shape, start=dtype.itemsize) != info.file_size - n_bytes:
        raise TraceError(f"{name} does not hold what its header says")
    return _Header(dtype, shape, n_bytes)


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, header: _Header) -> np.ndarray:
    """The array in an `.npy` member, never to be changed."""
    found = np.frombuffer(_unpacked(archive, info, header.n_bytes), header.dtype).reshape(header.shape)
    return found.astype(header.dtype.newbyteorder("="), copy=False)
