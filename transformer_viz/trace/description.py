"""The part of a trace file that is JSON: what it says, and a Trace made of it again.

Nothing is believed: types, ranges and lengths of everything are checked; the Trace checks how the parts fit together.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, get_args

import numpy as np

from transformer_viz.errors import TraceError, listed
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.groups import Group
from transformer_viz.trace.search import Search, SearchNode
from transformer_viz.trace.trace import Candidate, Fill, Finished, Step, Trace
from transformer_viz.vocabulary import START

_ENDINGS = get_args(Finished)
_ROUNDING = 1e-6
_LARGEST = 10**9
"""More than any rank, row, step or id of a token."""


def described(trace: Trace) -> dict[str, Any]:
    """Everything but the arrays, as JSON-ready data."""
    names = ("source", "text", "source_tokens", "target_tokens", "output_tokens", "finished", "alignment", "source_letters")
    meta = {name: getattr(trace, name) for name in names}
    layers = {kind: each.layers for kind, each in trace.attentions.items() if each.layers != tuple(range(each.n_layers))}
    meta |= {
        "expected": trace.expected,
        "expected_tokens": trace.expected_tokens,
        "made_by": dict(trace.made_by),
        "mistake": trace.mistake,
        "edits": trace.edits,
        "search": None if trace.search is None else _search_meta(trace.search),
        **({"layers": layers} if layers else {}),
        **_later_parts(trace),
    }
    return {**meta, "steps": [step_meta(step) for step in trace.steps]}


def _later_parts(trace: Trace) -> dict[str, Any]:
    """What only some runs have: a file of another says nothing of it, as before there was any."""
    parts = {
        "n_given": trace.n_given,
        **{name: getattr(trace, name) for name in ("source_ids", "target_ids", "output_ids")},
        "fills": [{**_data(fill), "candidates": _candidates_meta(fill.candidates)} for fill in trace.fills],
        "groups": {name: trace.groups[name].notes for name in sorted(trace.groups)},
    }
    return {name: part for name, part in parts.items() if part or isinstance(part, tuple)}


def _data(of: Step | SearchNode | Fill) -> dict[str, Any]:
    """As JSON-ready data; ids where there are any."""
    data = asdict(of)
    return {name: value for name, value in data.items() if name not in ("token_id", "candidate_ids") or value not in (None, ())}


def _search_meta(search: Search) -> dict[str, Any]:
    """Everything but the rows, which are arrays."""
    return {
        "nodes": [_data(node) for node in search.nodes],
        "best": search.best,
        "alignment": search.alignment,
        "candidates": search.candidates,
        "settings": dict(search.settings),
        **({"opening": search.opening} if search.opening != (START,) else {}),
        **({} if search.opening_ids is None else {"opening_ids": search.opening_ids}),
        **({"candidate_ids": search.candidate_ids} if search.candidate_ids else {}),
    }


def step_meta(step: Step) -> dict[str, Any]:
    """JSON has no NaN and no infinity: a number that a mistake made NaN is null, and the logarithm of 0."""
    data = _data(step)
    for name in ("probability", "log_probability"):
        data[name] = _or_null(data[name])
    return {**data, "candidates": _candidates_meta(step.candidates)}


def _candidates_meta(candidates: Iterable[Candidate]) -> list[tuple[str, float | None]]:
    return [(token, _or_null(p)) for token, p in candidates]


def _or_null(number: float) -> float | None:
    return number if math.isfinite(number) else None


def built(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Trace:
    """A Trace from what `described` gave and the arrays by their members' names.

    Raises:
        TraceError: a value that cannot be; other errors where something is missing or of another type.
    """
    mistake, expected_tokens = meta["mistake"], meta["expected_tokens"]
    steps = tuple(step_of(step, may_be_nan=mistake is not None) for step in _list(meta["steps"]))
    if meta["finished"] not in _ENDINGS:
        raise TraceError(f"finished is {str(meta['finished'])[:40]!r}; it is one of {listed(_ENDINGS)}")
    trace = Trace(
        source=_text(meta["source"]),
        text=_text(meta["text"]),
        source_tokens=tuple(map(_text, _list(meta["source_tokens"]))),
        target_tokens=tuple(map(_text, _list(meta["target_tokens"]))),
        output_tokens=tuple(map(_text, _list(meta["output_tokens"]))),
        steps=steps,
        attentions=_attentions(arrays, _layers(meta.get("layers", {}))),
        finished=meta["finished"],
        alignment=tuple(_index(i, len(meta["source_tokens"])) for i in _list(meta["alignment"])),
        source_letters=tuple(_index(i, len(meta["source_tokens"])) for i in _list(meta["source_letters"])),
        expected=None if meta["expected"] is None else _text(meta["expected"]),
        expected_tokens=None if expected_tokens is None else tuple(map(_text, _list(expected_tokens))),
        made_by=_dict(meta["made_by"]),
        mistake=None if mistake is None else _text(mistake),
        edits=tuple(map(_text, _list(meta["edits"]))),
        search=_search(meta.get("search"), arrays, len(meta["source_tokens"])),
        n_given=_index(meta.get("n_given", 0), _LARGEST) or 0,
        source_ids=_ids_or_none(meta.get("source_ids")),
        target_ids=_ids_or_none(meta.get("target_ids")),
        output_ids=_ids_or_none(meta.get("output_ids")),
        fills=tuple(_fill(fill, may_be_nan=mistake is not None) for fill in _list(meta.get("fills", []))),
        groups=_groups(meta.get("groups", {}), arrays),
    )
    if not trace.kinds:
        raise TraceError("it holds no attention")
    return trace


def check_shapes(meta: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Whether arrays can belong to what `described` gave, by the shapes in their members' headers: what cannot need not be
    unpacked to be refused.

    Raises:
        TraceError: an array that cannot; other errors as `built`.
    """
    n_source, n_target, search = len(_list(meta["source_tokens"])), len(_list(meta["target_tokens"])), meta.get("search")
    sizes = {"encoder": (n_source, n_source), "decoder": (n_target, n_target), "cross": (n_target, n_source)}
    possible: dict[str, tuple[tuple[int, ...], ...]] = {}
    for kind, size in sizes.items():
        whole = (*shapes.get(f"{kind}_attentions.npy", ())[:2], *size)
        possible |= {f"{kind}_attentions.npy": (whole,), f"{kind}_scores.npy": (whole,)}
        possible[f"{kind}_mask_reasons.npy"] = (size, whole)
        if search is not None and kind != "encoder":
            n_keys = n_source if kind == "cross" else len(search.get("opening", [START])) - 1 + len(search["alignment"])
            possible[f"{kind}_rows.npy"] = ((len(search["candidates"]), *whole[:2], n_keys),)
            possible[f"{kind}_search_reasons.npy"] = ((n_keys, n_keys), (*whole[:2], n_keys, n_keys))
    for member, shape in shapes.items():
        group, slash, _ = member.rpartition("/")
        if slash and group not in _dict(meta.get("groups", {})):
            raise TraceError(f"it holds {member!r}, which does not belong there: it has no group {group!r}")
        if not slash and shape not in possible.get(member, ()):
            wanted = " or ".join(map(str, possible.get(member, ()))) or "no such array"
            raise TraceError(f"{member} has the shape {shape}; for the tokens of this run {wanted} is needed")


def _layers(meta: Any) -> dict[Kind, tuple[int, ...]]:
    found: dict[Kind, tuple[int, ...]] = {}
    for kind in KINDS:
        if kind in _dict(meta):
            found[kind] = tuple(int(_number(number)) for number in _list(meta[kind]) if _index(number, 10**4) is not None)
    if unknown := sorted(set(meta) - set(found)):
        raise TraceError(f"layers: {unknown[0][:40]!r} is no kind of attention; there are {listed(KINDS)}")
    return found


def _search(meta: Any, arrays: Mapping[str, np.ndarray], n_source: int) -> Search | None:
    if meta is None:
        return None
    n_nodes = len(_list(meta["nodes"]))
    return Search(
        nodes=tuple(_node(node, n_nodes) for node in meta["nodes"]),
        best=tuple(_index(i, n_nodes) or 0 for i in _list(meta["best"])),
        decoder_rows=arrays.get("decoder_rows.npy"),
        cross_rows=arrays.get("cross_rows.npy"),
        alignment=tuple(_index(i, n_source) for i in _list(meta["alignment"])),
        candidates=tuple(_candidates(row) for row in _list(meta["candidates"])),
        settings=_dict(meta["settings"]),
        opening=tuple(map(_text, _list(meta.get("opening", [START])))),
        opening_ids=_ids_or_none(meta.get("opening_ids")),
        candidate_ids=tuple(map(_ids, _list(meta.get("candidate_ids", [])))),
        decoder_reasons=arrays.get("decoder_search_reasons.npy"),
    )


def _node(data: Any, n_nodes: int) -> SearchNode:
    return SearchNode(
        parent=_index(data["parent"], n_nodes),
        row=_index(data["row"], _LARGEST) or 0,
        step=_index(data["step"], _LARGEST) or 0,
        token=_text(data["token"]),
        text=_text(data["text"]),
        log_probability=_log_probability(data["log_probability"]),
        total=_number(data["total"]),
        score=_number(data["score"]),
        rank=_index(data["rank"], _LARGEST) or 0,
        place=_index(data["place"], _LARGEST) or 0,
        state=data["state"],
        pruned_by=_index(data["pruned_by"], n_nodes),
        token_id=_index(data.get("token_id"), _LARGEST),
    )


def _fill(data: Any, may_be_nan: bool) -> Fill:
    return Fill(
        place=_index(data["place"], _LARGEST) or 0,
        candidates=_candidates(data["candidates"], may_be_nan),
        candidate_ids=_ids(data.get("candidate_ids", [])),
    )


def _groups(meta: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, Group]:
    """Those that this program does not know, too."""
    found: dict[str, dict[str, np.ndarray]] = {name: {} for name in _dict(meta)}
    for member, array in arrays.items():
        group, slash, name = member.removesuffix(".npy").rpartition("/")
        if slash:
            found[group][name] = array
    return {name: Group(found[name], _dict(notes)) for name, notes in meta.items()}


def _candidates(row: Any, may_be_nan: bool = False) -> tuple[Candidate, ...]:
    return tuple((_text(token), _probability_or_nan(p, may_be_nan)) for token, p in _list(row))


def _attentions(arrays: Mapping[str, np.ndarray], layers: Mapping[Kind, tuple[int, ...]]) -> dict[Kind, Attention]:
    attentions: dict[Kind, Attention] = {}
    for kind in KINDS:
        names = [f"{kind}_{part}.npy" for part in ("attentions", "mask_reasons", "scores")]
        weights, reasons, scores = map(arrays.get, names)
        if weights is not None and reasons is not None:
            attentions[kind] = Attention(weights=weights, reasons=reasons, scores=scores, layers=layers.get(kind, ()))
        elif left := [name for name in names if name in arrays]:
            raise TraceError(f"{kind}: there is {left[0]}, and not both weights and mask")
        elif kind in layers:
            raise TraceError(f"{kind}: layers are numbered, and there is no attention")
    return attentions


def step_of(data: Any, may_be_nan: bool) -> Step:
    """A step of what `step_meta` gave; raises as `built` does."""
    sampling, rank = data["sampling_probability"], data["rank"]
    p, log_p = _probability_or_nan(data["probability"], may_be_nan), data["log_probability"]
    if log_p is None and (p == 0 or may_be_nan):
        log_p = -math.inf if p == 0 else math.nan
    else:
        log_p = _log_probability(log_p)
    return Step(
        token=_text(data["token"]),
        probability=p,
        log_probability=log_p,
        rank=_index(rank, _LARGEST),
        candidates=_candidates(data["candidates"], may_be_nan),
        sampling_probability=None if sampling is None else _probability(sampling),
        token_id=_index(data.get("token_id"), _LARGEST),
        candidate_ids=_ids(data.get("candidate_ids", [])),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TraceError(f"{str(value)[:40]!r} should be text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise TraceError(f"{str(value)[:40]!r} should be a finite number")
    return float(value)


def _probability(value: Any) -> float:
    number = _number(value)
    if not 0 <= number <= 1 + _ROUNDING:
        raise TraceError(f"{number:g} should be a probability, from 0 to 1")
    return number


def _probability_or_nan(value: Any, may_be_nan: bool) -> float:
    return math.nan if value is None and may_be_nan else _probability(value)


def _log_probability(value: Any) -> float:
    number = _number(value)
    if number > _ROUNDING:
        raise TraceError(f"{number:g} should be the logarithm of a probability, at most 0")
    return number


def _index(value: Any, below: int) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below):
        raise TraceError(f"{str(value)[:40]!r} should be a position below {below}")
    return value


def _ids(value: Any) -> tuple[int, ...]:
    ids = tuple(number for each in _list(value) if (number := _index(each, _LARGEST)) is not None)
    if len(ids) < len(value):
        raise TraceError("an id is null; it is a whole number")
    return ids


def _ids_or_none(value: Any) -> tuple[int, ...] | None:
    return None if value is None else _ids(value)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TraceError(f"{str(value)[:40]!r} should be a list")
    return value


def _dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TraceError(f"{str(value)[:40]!r} should be an object")
    return value
