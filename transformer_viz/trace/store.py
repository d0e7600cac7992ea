"""A trace as a file: a zip of plain `.npy` arrays and one `meta.json`, the layout of numpy's `.npz`.

Reading trusts nothing: members, sizes, types and shapes are checked before memory is taken,
and arrays are taken from bytes, never unpickled.
"""

import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from transformer_viz.errors import TraceError, TransformerVizError
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.search import Search, SearchNode
from transformer_viz.trace.trace import Step, Trace

FORMAT = 1
LARGEST = 2**30
"""The most bytes that a file may unpack to."""
_LARGEST_META = 64 * 2**20
_META = "meta.json"
_DTYPES = {"attentions": np.dtype("<f4"), "mask_reasons": np.dtype("u1"), "scores": np.dtype("<f4"), "rows": np.dtype("<f4")}
# What numpy writes before an array, and nothing else: its own parser evaluates literals and can fail in many ways.
_HEADER = re.compile(
    rb"\{'descr': '([<|][a-z]\d)', 'fortran_order': False, 'shape': \((\d{1,9}(?:, \d{1,9}){1,3})\), \} *\n", re.ASCII
)
_MAGIC = b"\x93NUMPY\x01\x00"
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
# A fixed date, so that two files of the same run are the same bytes.
_DATE = (2017, 6, 12, 0, 0, 0)


def save_trace(trace: Trace, path: str | PathLike[str]) -> None:
    """Writes `trace` to `path`, over what is there."""
    Path(path).write_bytes(to_bytes(trace))


def to_bytes(trace: Trace) -> bytes:
    """The file's content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in _arrays(trace).items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(_member(f"{name}.npy"), member.getvalue())
        archive.writestr(_member(_META), json.dumps(_meta(trace), ensure_ascii=False, allow_nan=False).encode())
    return buffer.getvalue()


def load_trace(path: str | PathLike[str] | BinaryIO) -> Trace:
    """Reads a file that `save_trace` wrote.

    Raises:
        TraceError: not a trace, damaged, too large, or of a later version.
    """
    name = getattr(path, "name", None) or (str(path) if isinstance(path, str | PathLike) else "the file")
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except FileNotFoundError:
        raise TraceError(f"There is no file {name}.") from None
    except TransformerVizError as error:
        raise TraceError(f"{name} is not a trace that this program can read: {error}") from error
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise TraceError(f"{name} is damaged or not a trace file ({type(error).__name__}). Save or copy it again.") from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise TraceError(f"{name} is not a trace file ({type(error).__name__}: {error}).") from error


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _arrays(trace: Trace) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for kind in trace.kinds:
        weights = trace.attentions(kind)
        assert weights is not None
        arrays[f"{kind}_attentions"] = weights.astype(_DTYPES["attentions"], copy=False)
        arrays[f"{kind}_mask_reasons"] = trace.mask_reasons[kind]
        if kind in trace.scores:
            arrays[f"{kind}_scores"] = trace.scores[kind].astype(_DTYPES["scores"], copy=False)
    if trace.search is not None:
        arrays["decoder_rows"] = trace.search.decoder_rows.astype(_DTYPES["rows"], copy=False)
        arrays["cross_rows"] = trace.search.cross_rows.astype(_DTYPES["rows"], copy=False)
    return arrays


def _meta(trace: Trace) -> dict[str, Any]:
    names = ("source", "text", "source_tokens", "target_tokens", "output_tokens", "finished", "alignment", "source_letters")
    meta = {name: getattr(trace, name) for name in names}
    meta |= {
        "expected": trace.expected,
        "expected_tokens": trace.expected_tokens,
        "made_by": dict(trace.made_by),
        "mistake": trace.mistake,
        "edits": trace.edits,
        "search": None if trace.search is None else _search_meta(trace.search),
    }
    return {"format": FORMAT, **meta, "steps": [_step_meta(step) for step in trace.steps]}


def _search_meta(search: Search) -> dict[str, Any]:
    """Everything but the rows, which are arrays."""
    return {
        "nodes": [asdict(node) for node in search.nodes],
        "best": search.best,
        "alignment": search.alignment,
        "candidates": search.candidates,
        "settings": dict(search.settings),
    }


def _step_meta(step: Step) -> dict[str, Any]:
    """JSON has no NaN: a number that a mistake made NaN is null."""
    data = asdict(step)
    for name in ("probability", "log_probability"):
        data[name] = _or_null(data[name])
    return {**data, "candidates": [(token, _or_null(p)) for token, p in step.candidates]}


def _or_null(number: float) -> float | None:
    return None if math.isnan(number) else number


def _read(archive: zipfile.ZipFile) -> Trace:
    sizes = {info.filename: info.file_size for info in archive.infolist()}
    allowed = {_META} | {f"{kind}_{what}.npy" for kind in KINDS for what in _DTYPES}
    if unknown := sorted(set(sizes) - allowed):
        raise TraceError(f"it holds {unknown[0]!r}, which does not belong there")
    if _META not in sizes:
        raise TraceError(f"{_META} is missing")
    if len(archive.infolist()) != len(sizes):
        raise TraceError("a member stands in it twice")
    if any(info.compress_type not in _COMPRESSIONS for info in archive.infolist()):
        raise TraceError("it is compressed in another way than this program does it")
    if sum(sizes.values()) > LARGEST or sizes[_META] > _LARGEST_META:
        raise TraceError(f"it unpacks to more than {LARGEST // 2**20} MB")
    meta = json.loads(archive.read(_META).decode("utf-8"), parse_float=_finite, parse_constant=_finite)
    json.dumps(meta, ensure_ascii=False).encode()  # an escaped half of a character could be neither drawn nor saved
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        given = meta.get("format") if isinstance(meta, dict) else None
        raise TraceError(f"its format is {given!r}, and this version reads format {FORMAT}; update the program")
    arrays = {name: _array(archive.read(name), name) for name in sizes if name != _META}
    return _built(meta, arrays)


def _array(data: bytes, name: str) -> np.ndarray:
    """The array in an `.npy` member; its header must describe exactly the bytes that are there."""
    want = _DTYPES[name.removesuffix(".npy").split("_", 1)[1]]
    start = len(_MAGIC) + 2
    end = start + int.from_bytes(data[len(_MAGIC) : start], "little")
    header = _HEADER.fullmatch(data[start:end])
    if not data.startswith(_MAGIC) or header is None or header[1].decode() != want.str:
        raise TraceError(f"{name} is not an array of {want} with two to four axes")
    shape = tuple(int(size) for size in header[2].split(b", "))
    rest = data[end:]
    # Python's integers do not overflow, so an absurd shape cannot pass for a small one.
    n_bytes = want.itemsize
    for size in shape:
        n_bytes *= size
    if n_bytes != len(rest):
        raise TraceError(f"{name} does not hold what its header says")
    return np.frombuffer(rest, dtype=want).reshape(shape).astype(want.newbyteorder("="), copy=True)


def _built(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Trace:
    mistake, expected_tokens = meta["mistake"], meta["expected_tokens"]
    steps = tuple(_step(step, may_be_nan=mistake is not None) for step in _list(meta["steps"]))
    if meta["finished"] not in ("end", "length"):
        raise TraceError(f"finished is {meta['finished']!r}; it is 'end' or 'length'")
    return Trace(
        source=_text(meta["source"]),
        text=_text(meta["text"]),
        source_tokens=tuple(map(_text, _list(meta["source_tokens"]))),
        target_tokens=tuple(map(_text, _list(meta["target_tokens"]))),
        output_tokens=tuple(map(_text, _list(meta["output_tokens"]))),
        steps=steps,
        encoder_attentions=arrays.get("encoder_attentions.npy"),
        decoder_attentions=arrays.get("decoder_attentions.npy"),
        cross_attentions=arrays.get("cross_attentions.npy"),
        mask_reasons=_by_kind(arrays, "mask_reasons"),
        scores=_by_kind(arrays, "scores"),
        finished=meta["finished"],
        alignment=tuple(_index(i, len(meta["source_tokens"])) for i in _list(meta["alignment"])),
        source_letters=tuple(_index(i, len(meta["source_tokens"])) for i in _list(meta["source_letters"])),
        expected=None if meta["expected"] is None else _text(meta["expected"]),
        expected_tokens=None if expected_tokens is None else tuple(map(_text, _list(expected_tokens))),
        made_by=_dict(meta["made_by"]),
        mistake=None if mistake is None else _text(mistake),
        # Files of before there were edits have none.
        edits=tuple(map(_text, _list(meta.get("edits", [])))),
        search=_search(meta.get("search"), arrays, len(meta["source_tokens"])),
    )


def _search(meta: Any, arrays: Mapping[str, np.ndarray], n_source: int) -> Search | None:
    if meta is None:
        return None
    n_nodes = len(_list(meta["nodes"]))
    return Search(
        nodes=tuple(_node(node, n_nodes) for node in meta["nodes"]),
        best=tuple(_index(i, n_nodes) or 0 for i in _list(meta["best"])),
        decoder_rows=arrays["decoder_rows.npy"],
        cross_rows=arrays["cross_rows.npy"],
        alignment=tuple(_index(i, n_source) for i in _list(meta["alignment"])),
        candidates=tuple(_candidates(row) for row in _list(meta["candidates"])),
        settings=_dict(meta["settings"]),
    )


def _node(data: Any, n_nodes: int) -> SearchNode:
    return SearchNode(
        parent=_index(data["parent"], n_nodes),
        row=_index(data["row"], 10**9) or 0,
        step=_index(data["step"], 10**9) or 0,
        token=_text(data["token"]),
        text=_text(data["text"]),
        log_probability=_number(data["log_probability"]),
        total=_number(data["total"]),
        score=_number(data["score"]),
        rank=_index(data["rank"], 10**9) or 0,
        place=_index(data["place"], 10**9) or 0,
        state=data["state"],
        pruned_by=_index(data["pruned_by"], n_nodes),
    )


def _candidates(row: Any) -> tuple[tuple[str, float], ...]:
    return tuple((_text(token), _number(p)) for token, p in _list(row))


def _by_kind(arrays: Mapping[str, np.ndarray], what: str) -> dict[Kind, np.ndarray]:
    return {kind: arrays[f"{kind}_{what}.npy"] for kind in KINDS if f"{kind}_{what}.npy" in arrays}


def _step(data: Any, may_be_nan: bool) -> Step:
    sampling = data["sampling_probability"]

    def number(value: Any) -> float:
        return math.nan if value is None and may_be_nan else _number(value)

    return Step(
        token=_text(data["token"]),
        probability=number(data["probability"]),
        log_probability=number(data["log_probability"]),
        rank=_index(data["rank"], 10**9) or 0,
        candidates=tuple((_text(token), number(p)) for token, p in _list(data["candidates"])),
        sampling_probability=None if sampling is None else _number(sampling),
    )


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise TraceError(f"{text[:40]} should be a finite number")
    return number


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TraceError(f"{str(value)[:40]!r} should be text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise TraceError(f"{str(value)[:40]!r} should be a finite number")
    return float(value)


def _index(value: Any, below: int) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below):
        raise TraceError(f"{str(value)[:40]!r} should be a position below {below}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TraceError(f"{str(value)[:40]!r} should be a list")
    return value


def _dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TraceError(f"{str(value)[:40]!r} should be an object")
    return value
