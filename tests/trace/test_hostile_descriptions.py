"""Whatever stands in `meta.json`: a TraceError, or a trace that can be looked at and saved again."""

import copy
import json
import zipfile
from typing import Any

import pytest


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
def test_every_place_of_the_description_with_every_wrong_value(which, request, members, zipped, refused_or_sound):
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
def test_descriptions_that_are_none(saved, text, members, zipped, refused_or_sound):
    assert refused_or_sound(zipped({**members(saved), "meta.json": text.encode("latin1")}))
