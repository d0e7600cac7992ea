"""Ways to damage any file, and values that have no place in one."""

import random
from typing import Any

HTML = (
    *(
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "</s>",
        "$x$",
        "\u202e",
        "\x1b[31m",
        "a\nb",
        "%{x}",
        "&amp;",
    ),
    *("e" + "\u0301" * 50, "👩‍👩‍👧‍👦", "/etc/passwd", "../..", "a" * 5000, "\x00"),
)
NUMBERS: tuple[Any, ...] = (0, 1, -1, 3, 0.5, -0.5, 255, 8192, 65536, 2**31, 2**63, 10**400, 1e300, -1e300, 5e-324)
VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "x", "1", [], [[]], {}, {"a": [1]}, [None], [0] * 5000, {"": ""}),
    *NUMBERS,
    *HTML,
)


def bits(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 7))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(data: bytes, rng: random.Random) -> bytes:
    start = rng.choice((0, 0, rng.randrange(len(data))))
    return data[start : rng.randrange(start, len(data) + 1)]


def doubled(data: bytes, rng: random.Random) -> bytes:
    """A piece twice, moved, or between two halves of others."""
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    return data[:b] + data[a:b] + data[b:] if rng.random() < 0.5 else data[:a] + data[b:] + data[a:b]


def some_place(data: Any, rng: random.Random) -> tuple[Any, Any]:
    """A list or object of a description, and one of its places."""
    at = data
    while True:
        key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if not isinstance(at[key], dict | list) or not at[key] or rng.random() < 0.25:
            return at, key
        at = at[key]


def change_places(data: Any, rng: random.Random) -> None:
    """One to three places of a description with another value, without it, or many times."""
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        if not data:
            return
        at, key = some_place(data, rng)
        way = rng.random()
        if way < 0.12:
            del at[key]
        elif way < 0.2 and isinstance(at, dict):
            at[rng.choice(("", "x", "__class__", "n_layers", *HTML))] = rng.choice(VALUES)
        elif way < 0.3 and isinstance(at, list):
            at.extend([at[key]] * rng.choice((1, 2, 3000)))
        else:
            at[key] = rng.choice(VALUES)
