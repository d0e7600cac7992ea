"""What was recorded: results made flat, written small, read back, and compared within a tolerance.

A result is any nesting of mappings, dataclasses, lists, texts, numbers and arrays. Made flat it has one name a leaf, such as
`steps.probability`, and each leaf is text or an array of numbers. Numbers lie in one `.npz` file, the rest in one of JSON.
"""

import base64
import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Flat = dict[str, Any]
"""Name of a leaf: a text, a list of texts, None, or an array, or what is kept of it."""
LEFT_OUT = re.compile(r"(seconds|device|versions?|folder|fingerprint|digest|made_by|bytes|run|config)$", re.IGNORECASE)
"""Leaves, and what is below them, that are of the machine or the moment."""
WORDS = re.compile(r"(help|titles?|headline|notes?|words|sentences?|verdict|why_coarser|reason_words)$", re.IGNORECASE)
"""Leaves that are written for people, and may be written in another way."""
SINCE: dict[str, str] = {}
"""What the name of a leaf was when it was recorded, as a pattern, and what it is called today."""
TOLERANCE = {"page.read": 2e-3, "half precision": 1e-3, "float64": 1e-12, "": 5e-5}
"""By words of title and leaf. Between processors a score of float32 differs by 2e-5, and what is rounded, as in half precision
or on a page, by its last digit."""
_MOST = 160
"""Numbers that are kept of one array; a longer one is kept as so many sums over neighbours."""


def flat(result: Any, name: str = "") -> Flat:
    """Every leaf of a result by its name."""
    if LEFT_OUT.search(name) or WORDS.search(name):
        return {}
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        result = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    if isinstance(result, Mapping):
        return _joined((f"{name}.{key}".lstrip("."), part) for key, part in result.items())
    if result is None or isinstance(result, str):
        return {name: result}
    if isinstance(result, Sequence):
        return _of_list(list(result), name)
    array = np.asarray(result)
    if array.dtype.kind not in "fiub":
        return {name: str(result)}
    return {name: array}


def _joined(parts: Iterator[tuple[str, Any]]) -> Flat:
    return {name: leaf for path, part in parts for name, leaf in flat(part, path).items()}


def _of_list(items: list[Any], name: str) -> Flat:
    """Numbers are an array, texts a list; of records that are alike each field is a list."""
    if items and all(_is_number(item) for item in items) and any(item is not None for item in items):
        return {name: np.array([np.nan if item is None else item for item in items])}
    if all(item is None or isinstance(item, str) for item in items):
        return {name: items}
    if dataclasses.is_dataclass(items[0]):
        items = [{field.name: getattr(item, field.name) for field in dataclasses.fields(item)} for item in items]
    if all(isinstance(item, Mapping) for item in items):
        keys = list(dict.fromkeys(key for item in items for key in item))
        return _joined((f"{name}.{key}", [item.get(key) for item in items]) for key in keys)
    if all(isinstance(item, list | tuple) for item in items):
        if {len(item) for item in items} <= {1, 2, 3} and len({len(item) for item in items}) == 1:
            return _joined((f"{name}.{place}", list(column)) for place, column in enumerate(zip(*items, strict=True)))
        return flat({"lengths": [len(item) for item in items], "all": [part for item in items for part in item]}, name)
    return _joined((f"{name}.{place}", item) for place, item in enumerate(items))


def _is_number(item: Any) -> bool:
    return item is None or isinstance(item, bool | int | float | np.number | np.bool_)


def arrays_in(content: Any, name: str = "") -> Flat:
    """Every array in plain data that Plotly or a page is sent: its typed arrays and its lists, at any depth."""
    if isinstance(content, Mapping) and "bdata" in content:
        numbers = np.frombuffer(base64.b64decode(content["bdata"]), np.dtype(content["dtype"]))
        shape = content.get("shape", [-1])
        return {name: numbers.reshape([int(n) for n in (shape.split(",") if isinstance(shape, str) else shape)])}
    if isinstance(content, Mapping):
        return {key: leaf for at, part in content.items() for key, leaf in arrays_in(part, f"{name}.{at}".lstrip(".")).items()}
    if not isinstance(content, list | tuple) or not content:
        return {}
    if all(isinstance(item, Mapping) for item in content):
        return {key: leaf for at, part in enumerate(content) for key, leaf in arrays_in(part, f"{name}.{at}").items()}
    try:
        return {name: np.array(content, dtype=float)}  # None is NaN
    except (TypeError, ValueError):
        return flat(list(content), name)


def drawn_by(figure: Mapping[str, Any]) -> Flat:
    """What Plotly draws of a figure, as plain data: where marks and cells are, and what colours and sizes say."""
    parts = ("x", "y", "z", "error_x", "error_y", "base", "marker")
    kept = [{part: trace[part] for part in parts if part in trace} for trace in figure["data"]]
    return {name: leaf for name, leaf in arrays_in(kept).items() if not name.endswith("colorscale")}


@dataclasses.dataclass
class Kept:
    """What is kept of an array: its numbers if there are few."""

    numbers: np.ndarray
    shape: list[int]
    whole: bool

    @classmethod
    def of(cls, array: np.ndarray) -> "Kept":
        """Of many numbers so many sums over neighbours, in which each has a weight of its own from 1 to 2.

        A change of one number changes its sum by as much or more, and numbers that change places change it too.
        """
        numbers = array.ravel().astype(float)
        if len(numbers) > _MOST:
            numbers = np.nan_to_num(numbers, nan=-3.0, posinf=5.0, neginf=-5.0)
            each = -(-len(numbers) // _MOST)
            numbers = np.pad(numbers, (0, -len(numbers) % each)).reshape(-1, each) @ np.linspace(1, 2, each)
        return cls(numbers, list(array.shape), array.dtype.kind in "iub")


def kept(result: Any) -> Flat:
    """A result made flat, with what is kept of its arrays."""
    return {name: Kept.of(leaf) if isinstance(leaf, np.ndarray) else leaf for name, leaf in flat(result).items()}


def write(path: Path, recorded: Mapping[str, Flat]) -> None:
    """Both files, `path` with `.json` and with `.npz`. What several have in common is in them once."""
    pool: list[np.ndarray] = [np.zeros(0)]
    places: dict[bytes, int] = {}
    described: dict[str, dict[str, Any]] = {}
    for title, result in recorded.items():
        described[title] = dict(result)
        for name, leaf in result.items():
            if isinstance(leaf, Kept):
                if (key := leaf.numbers.tobytes()) not in places:
                    places[key] = sum(map(len, pool))
                    pool.append(leaf.numbers)
                described[title][name] = {"at": places[key], "n": leaf.numbers.size, "shape": leaf.shape, "whole": leaf.whole}
    lines = (f"{json.dumps(title)}: {json.dumps(leaves, ensure_ascii=False)}" for title, leaves in described.items())
    path.with_suffix(".json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    np.savez_compressed(path.with_suffix(".npz"), numbers=np.concatenate(pool))


def read(path: Path) -> dict[str, Flat]:
    """What `write` has written."""
    described = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as file:
        numbers = file["numbers"]
    for leaves in described.values():
        for name, leaf in leaves.items():
            if isinstance(leaf, dict):
                leaves[name] = Kept(numbers[leaf["at"] : leaf["at"] + leaf["n"]], leaf["shape"], leaf["whole"])
    return described


def differences(title: str, recorded: Flat, now: Flat) -> list[str]:
    """What is not as it was, a line each; none if nothing differs."""
    for pattern, today in SINCE.items():
        recorded = {re.sub(pattern, today, name): leaf for name, leaf in recorded.items()}
    lines = [f"{title}: {name} is gone" for name in recorded if name not in now]
    lines += [f"{title}: {name} is new" for name in now if name not in recorded]
    for name in recorded.keys() & now.keys():
        tolerance = next(most for words, most in TOLERANCE.items() if words in f"{title}: {name}")
        if line := _difference(recorded[name], now[name], tolerance):
            lines.append(f"{title}: {name} {line}")
    return sorted(lines)


def _difference(was: Any, now: Any, tolerance: float) -> str:
    if not isinstance(was, Kept) or not isinstance(now, Kept):
        return "" if was == now else f"was {str(was)[:200]} and is {str(now)[:200]}"
    if was.shape != now.shape:
        return f"had the shape {was.shape} and has {now.shape}"
    before, after = was.numbers, now.numbers
    # A large number has no more digits than a small one; and a sum must show what one of its numbers does.
    usual = np.abs(before) * (len(before) / max(1, math.prod(was.shape)))
    with np.errstate(invalid="ignore"):
        near = np.abs(after - before) <= (0.0 if was.whole else tolerance * np.fmax(1, usual))
    same = near | (before == after) | (np.isnan(before) & np.isnan(after))
    place, n = int(np.argmin(same)) if same.size else 0, int((~same).sum())
    return f"differs in {n} of {same.size} places; at {place} it was {before[place]} and is {after[place]}" if n else ""
