"""A trace as a file: a zip of plain `.npy` arrays and one `meta.json`, the layout of numpy's `.npz`.

`meta.json` is the Trace as the schema writes it, without its arrays; the name of each array's member says where in it the array
belongs: `attentions/cross/weights.npy`.

Reading trusts nothing: members, sizes, types and shapes are checked before an array is unpacked, and arrays are taken from
bytes, never unpickled.

Memory: reading a file that unpacks to n bytes takes at most about 4 n, for arrays and their checks, and for the
description (at most n / 16) as Python objects. A file that announces more bytes than allowed is refused before it is
unpacked, and no more is unpacked than it announces.
"""

import io
import json
import math
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from transformer_viz import untrusted_files
from transformer_viz.atomic_files import write_bytes
from transformer_viz.errors import TraceError, TraceTooLargeHere, TransformerVizError
from transformer_viz.schema import init_fields, read_value
from transformer_viz.trace.groups import DTYPES
from transformer_viz.trace.trace import Trace

FORMAT = 1
LARGEST = 2**30
"""The most bytes that a file may unpack to, and be on the disk, unless a caller sets less."""
_META_SHARE = 16
"""The description may take 1/16 of what a file may unpack to, since as Python objects it takes up to 25 times its bytes."""
_META = "meta.json"
_MEMBER = re.compile(
    r"(search|attentions/[a-z]{1,8}|insides/\d|(attributions|groups)/[a-z0-9_]{1,80})(/arrays)?/[a-z0-9_]{1,32}\.npy", re.ASCII
)
_DTYPES: dict[str, np.dtype] = {dtype.str: dtype for dtype in (np.dtype(name).newbyteorder("<") for name in DTYPES)}
# What numpy writes before an array, and nothing else: its own parser evaluates literals and can fail in many ways.
_HEADER = re.compile(
    rb"\{'descr': '([<|][a-z]\d)', 'fortran_order': False, 'shape': \((\d{1,9}(?:, \d{1,9}){0,5}),?\), \} *\n", re.ASCII
)
_MAGIC = b"\x93NUMPY\x01\x00"
_LARGEST_HEADER = 1024
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_LOCATOR_SIZE, _END_SIZE = 20, 22
_MOST_MEMBERS, _LARGEST_DIRECTORY = 288, 2**15
# A fixed date, so that two files of the same run are the same bytes.
_DATE = (2017, 6, 12, 0, 0, 0)


def save_trace(trace: Trace, path: str | PathLike[str]) -> None:
    """Writes a trace to a file, which replaces one of this name.

    Args:
        trace: the run.
        path: of the file, by custom with the ending `.npz`; its folder must be there.

    Raises:
        TraceError: the run holds something that a file cannot, such as an object in `made_by`.
        OSError: the disk is full, or the folder cannot be written to; a file that was there is still there.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "hello.npz"
        >>> tv.save_trace(tv.decode(model, "hello"), path)
        >>> path.exists()
        True
    """
    write_bytes(to_bytes(trace), Path(path))


def to_bytes(trace: Trace) -> bytes:
    """The file's content.

    Raises:
        TraceError: the run holds something that JSON does not know, such as an object in `made_by`.
    """
    members: dict[str, bytes] = {}
    plain = _split(trace, arrays := {})
    for name, array in arrays.items():
        member = io.BytesIO()
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        np.lib.format.write_array(member, np.ascontiguousarray(little), allow_pickle=False)
        members[f"{name}.npy"] = member.getvalue()
    try:
        text = json.dumps({"format": FORMAT, **plain}, ensure_ascii=False, allow_nan=False)
        untrusted_files.parse_json(text)
        members[_META] = text.encode()
    except (TypeError, ValueError, RecursionError, TransformerVizError) as error:
        raise TraceError(f"the run holds what JSON cannot ({str(error)[:200]}), so it cannot be saved") from error
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def description(trace: Trace) -> dict[str, Any]:
    """Describes a run without its arrays, as JSON has it: numbers that are not finite are null."""
    return _split(trace, {})


def _split(value: Any, arrays: dict[str, np.ndarray], path: str = "") -> Any:
    """A value as JSON has it, without its arrays, which go into `arrays` by where they stood; NaN and infinity are null."""
    if isinstance(value, tuple | list):
        return [_split(entry, arrays, f"{path}{i}/") for i, entry in enumerate(value)]
    if not (isinstance(value, Mapping) or is_dataclass(value)):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    parts = init_fields(value)
    arrays |= {f"{path}{name}": entry for name, entry in parts.items() if isinstance(entry, np.ndarray)}
    rest = {name: entry for name, entry in parts.items() if not isinstance(entry, np.ndarray)}
    return {name: _split(entry, arrays, f"{path}{name}/") for name, entry in rest.items()}


def _places(plain: Mapping[str, Any], members: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], str]]:
    """The inverse of `_split`: the object in which the array of each member stands, and its name there."""
    places = {}
    for member in members:
        *path, last = member.removesuffix(".npy").split("/")
        at: Any = plain
        for part in path:
            if isinstance(at, list):
                at = at[int(part)] if part.isdecimal() and int(part) < len(at) else None
            else:
                at = at.get(part) if isinstance(at, dict) else None
        if not isinstance(at, dict) or at.get(last) is not None:
            raise TraceError(f"it holds {member!r}, which does not belong there: {_META} has no place for it")
        places[member] = at, last
    return places


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

    Returns:
        The Trace.

    Raises:
        TraceError: not a trace, damaged, or of a later version.
        TraceTooLargeHere: a TraceError too; the file has, or unpacks to, more bytes than allowed.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> import io, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "hello.npz"
        >>> tv.save_trace(tv.decode(model, "hello"), path)
        >>> tv.load_trace(path).text
        'olleh'
    """
    name = str(path if isinstance(path, str | PathLike) else getattr(path, "name", None) or "the file")[-200:]
    try:
        if isinstance(path, bytes | bytearray | memoryview):
            opened: Any = io.BytesIO(path)
        elif isinstance(path, str | PathLike):
            opened = untrusted_files.open_file(path, sys.maxsize)  # its size is compared as that of every other file
        elif hasattr(path, "seek") and hasattr(path, "read"):
            opened = nullcontext(path)
        else:
            raise TraceError(f"a path, bytes or an open binary file is needed, not {type(path).__name__}")
        with opened as file:
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


def _read(archive: zipfile.ZipFile, most: int) -> Trace:
    members = {info.filename: info for info in archive.infolist()}
    if unknown := sorted(name for name in members if name != _META and not _MEMBER.fullmatch(name)):
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
    meta = untrusted_files.parse_json(_unpacked(archive, members.pop(_META)))
    given = meta.pop("format", None) if isinstance(meta, dict) else None
    if isinstance(given, bool) or given != FORMAT:
        raise TraceError(
            f"its format is {repr(given)[:40]}, and this version reads format {FORMAT}; open it with the version that wrote it"
        )
    headers, places = {name: _header(archive, info) for name, info in members.items()}, _places(meta, members)
    # Of zeros that take no memory first: what does not fit need not be unpacked to be refused.
    for name, (at, last) in places.items():
        at[last] = np.broadcast_to(np.zeros((), headers[name].dtype), headers[name].shape)
    read_value(Trace, meta, error=TraceError)
    for name, (at, last) in places.items():
        array = np.frombuffer(_unpacked(archive, members[name], headers[name].n_bytes), headers[name].dtype)
        at[last] = array.reshape(headers[name].shape).astype(headers[name].dtype.newbyteorder("="), copy=False)
    trace = read_value(Trace, meta, error=TraceError)
    if not trace.kinds:
        raise TraceError("it holds no attention")
    return trace


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, skipped: int = 0) -> bytes:
    """A member's bytes after the first `skipped`, never more than the directory says, as `read()` without a size would."""
    with archive.open(info) as member:
        member.read(skipped)
        data = member.read(info.file_size - skipped)
    if len(data) != info.file_size - skipped:
        raise TraceError(f"{info.filename} is shorter than the file's directory says")
    return data


@dataclass(frozen=True)
class _Header:
    """Reads the header of an `.npy` member, and counts its bytes."""

    dtype: np.dtype
    shape: tuple[int, ...]
    n_bytes: int


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Header:
    """Reads an array's header before the array; the two must have exactly as many bytes as the directory says."""
    name = info.filename
    with archive.open(info) as member:
        start = member.read(len(_MAGIC) + 2)
        header = member.read(min(_LARGEST_HEADER, int.from_bytes(start[len(_MAGIC) :], "little")))
    match = _HEADER.fullmatch(header)
    if not start.startswith(_MAGIC) or match is None or match[1].decode() not in _DTYPES:
        raise TraceError(f"{name} is not an array of {' or '.join(map(str, _DTYPES.values()))} with one to six axes")
    dtype, shape = _DTYPES[match[1].decode()], tuple(int(size) for size in match[2].split(b", "))
    n_bytes = len(start) + len(header)
    # Python's integers do not overflow, so an absurd shape cannot pass for a small one.
    if math.prod(shape, start=dtype.itemsize) != info.file_size - n_bytes:
        raise TraceError(f"{name} does not hold what its header says")
    return _Header(dtype, shape, n_bytes)
