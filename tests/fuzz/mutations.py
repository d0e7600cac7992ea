"""Ways to damage a trace file, and what the app does with one that still loads."""

import io
import json
import random
import zipfile
from typing import Any

from tests.sentences import step_sentence
from transformer_viz import figures
from transformer_viz.analysis.diff import diff
from transformer_viz.trace.store import load_trace, to_bytes
from transformer_viz.trace.trace import Trace

Members = dict[str, bytes]
MOST = 4 * 2**20
"""What a file may unpack to here."""
HTML = ("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</s>", "$x$", "\u202e", "\x00", "&amp;", "a" * 5000)
VALUES: list[Any] = [None, True, -1, 0, 1, 2**31, 2**63, 10**30, 0.5, -0.5, 1e300, "", "x", [], [[]], {}, {"a": [1]}, *HTML]
SHAPES = ["(0, 1, 1, 1)", "(999999999, 999999999)", "(1, 1, 1, 1)", "(-1, 2)", "(3,)", "()", "(1, 2, 3, 4, 5)", "(True, 2)"]


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


def inside(parts: Members, rng: random.Random) -> Members:
    """Bits of a member, with a checksum that fits."""
    name = rng.choice(sorted(parts))
    return {**parts, name: bits(parts[name], rng)}


def swapped(parts: Members, rng: random.Random) -> Members:
    a, b = rng.sample(sorted(parts), 2)
    return {**parts, a: parts[b], b: parts[a]} if rng.random() < 0.5 else {**parts, a: parts[b]}


def without(parts: Members, rng: random.Random) -> Members:
    gone = rng.choice(sorted(parts))
    return {name: content for name, content in parts.items() if name != gone}


def renamed(parts: Members, rng: random.Random) -> Members:
    old = rng.choice(sorted(parts))
    new = rng.choice(
        [
            *parts,
            "../x.npy",
            "groups/../x.npy",
            "groups/unheard_of/arrays/x.npy",
            "x" * 3000,
            "attentions/encoder/scores.npy",
            "search/decoder_rows.npy",
            "meta.json\x00",
        ]
    )
    return {new if name == old else name: content for name, content in parts.items()}


def header(parts: Members, rng: random.Random) -> Members:
    name = rng.choice([name for name in parts if name.endswith(".npy")])
    shape = rng.choice(SHAPES)
    dtype = rng.choice(["<f4", "|u1", "|O", "<f8", "<f2", ">f4", "<c8", "|V4"])
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return {**parts, name: b"\x93NUMPY\x01\x00" + len(text + b"\n").to_bytes(2, "little") + text + b"\n" + parts[name][128:]}


def pickled(parts: Members, rng: random.Random) -> Members:
    """Protocol 0: `os._exit(77)` when it is opened."""
    bomb = b"cos\n_exit\n(I77\ntR."
    name = rng.choice(sorted(parts))
    return {**parts, name: rng.choice((bomb, parts[name][:128] + bomb, b"\x80\x04" + bomb))}


def described(parts: Members, rng: random.Random) -> Members:
    """One to three places of the description with another value."""
    meta = json.loads(parts["meta.json"])
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at: Any = meta
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            key = rng.choice(keys)
            if isinstance(at[key], dict | list) and at[key] and rng.random() < 0.75:
                at = at[key]
                continue
            way = rng.random()
            if way < 0.15:
                del at[key]
            elif way < 0.3 and isinstance(at, list):
                at.insert(key, at[key])
            else:
                at[key] = rng.choice(VALUES)
            break
        if not meta:
            break
    return {**parts, "meta.json": json.dumps(meta).encode()}


def bomb(parts: Members, rng: random.Random) -> Members:
    """Unpacks to more than is allowed, in an array or in the description."""
    name = rng.choice(sorted(parts))
    filler = rng.choice((b"\x00", b"[],", b" ", b"[", b'{"a":'))
    return {**parts, name: filler * (rng.choice((MOST, MOST // 20, MOST // 200)) // len(filler))}


WHOLE = (bits, cut, doubled)
PARTS = (inside, swapped, without, renamed, header, pickled, described, described, described, bomb)


def mutated(data: bytes, parts: Members, rng: random.Random) -> tuple[str, bytes]:
    way = rng.choice((*WHOLE, *PARTS))
    if way in WHOLE:
        return way.__name__, way(data, rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in way(parts, rng).items():
            archive.writestr(name, content)
    changed = buffer.getvalue()
    return way.__name__, bits(changed, rng) if rng.random() < 0.05 else changed


def looked_at(trace: Trace, rng: random.Random) -> None:
    """What the app and the notebook do with a run; nothing of it may fail, and what is saved loads again."""
    load_trace(to_bytes(trace))
    for number in range(len(trace.search.best) if trace.search else 0):
        trace.hypothesis(number)
    kind = rng.choice(trace.kinds)
    for step in range(max(1, trace.n_steps)):
        step_sentence(trace, kind, trace.attentions[kind].layers[0], 0, step)
    if rng.random() < 0.1:
        drawn = [figures.player(trace, kind), figures.mosaic(trace, kind), figures.mask(trace, kind)]
        drawn += [figures.search_tree(trace)] if trace.search else []
        assert not any("<script" in figure.to_json() for figure in drawn)
        trace.to_frame()
        assert diff(trace, trace).equal
