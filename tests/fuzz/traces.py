"""Damaged and hostile trace files by a seeded generator, and everything that is done with a trace done with each."""

import io
import json
import random
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.conftest import build_checkpoint, build_model
from tests.fuzz.mutations import HTML, bits, change_places, cut, doubled
from tests.fuzz.watch import Watch
from tests.sentences import step_sentence
from tests.trace import planted
from tests.trace.conftest import members_of
from transformer_viz import Trace, decode, figures, save_trace
from transformer_viz.comparison.diff import diff
from transformer_viz.errors import TransformerVizError
from transformer_viz.export.drawings import WHATS
from transformer_viz.terms import KINDS
from transformer_viz.trace import limits
from transformer_viz.trace.store import load_trace, to_bytes
from transformer_viz.viewer import modules, plotly_js

ODD = (
    *(*HTML, "</script>", "<b>", "{{data}}", "\u202eabc", "\u2066", "\t", "", " ", "\ufeff", "\u200b", "e" + "\u0301" * 3000),
    *("𝕏", "汉", "**b**", "a" * 39, "a" * 41, "javascript:x", "<pad>", "<start>", "constructor", "__proto__"),
)
Members = dict[str, bytes]
MOST = 4 * 2**20
"""What a file may unpack to here."""
LENGTHS = (50, 3000, 15_000, 17_000, 200_000, 1_500_000)
_MOST_WEIGHTS = 200_000
"""Of one kind, for what is sound is made into a table too, and an honest one of a million rows takes three seconds."""
COUNTS = (0, 1, 2, 17, 65, 300, 512, 513, 3000)
Way = Callable[[Members, random.Random], Members]


def make_good(folder: Path) -> list[Path]:
    """A run of each kind that differs in what a file holds."""
    small = build_checkpoint(build_model(0, n_heads=2, n_encoder_layers=1, n_decoder_layers=1))
    deep = build_checkpoint(build_model(1, n_heads=2, n_encoder_layers=3, n_decoder_layers=3))
    traces = {
        "greedy": decode(small, "he", max_length=3),
        "scores": decode(small, "he", max_length=3, record=("weights", "scores")),
        "mistake": decode(small, "he", max_length=3, mistake="no-causal"),
        "beam": decode(small, "he", strategy="beam", beam_size=2, max_length=3),
        "part": decode(deep, "he", max_length=3, layers=(0, 2), precision="float16"),
        "arrays": Trace.from_arrays(cross=np.full((1, 2, 3, 2), 0.5), source_tokens=["a", "b"], target_tokens=["c", "d", "e"]),
        "prompt": planted.grouped(planted.search((0, 4), has_source=True, is_windowed=True, steps=2)),
        "fills": planted.filled(),
    }
    for name, trace in traces.items():
        save_trace(trace, folder / f"{name}.npz")
    return [folder / f"{name}.npz" for name in traces]


# What is done to them


def inside(parts: Members, rng: random.Random) -> Members:
    """Bits of a member, with a checksum that fits."""
    name = rng.choice(sorted(parts))
    return {**parts, name: bits(parts[name], rng)}


def swapped(parts: Members, rng: random.Random) -> Members:
    a, b = rng.sample(sorted(parts), 2)
    return {**parts, a: parts[b], b: parts[a]} if rng.random() < 0.5 else {**parts, a: parts[b]}


def renamed(parts: Members, rng: random.Random) -> Members:
    """A member under another name, or gone."""
    old = rng.choice(sorted(parts))
    others = ("../x.npy", "groups/unheard_of/arrays/x.npy", "x" * 3000, "attentions/encoder/scores.npy", "meta.json\x00", "")
    new = rng.choice([*parts, *others])
    return {new if name == old else name: content for name, content in parts.items() if new or name != old}


def described(parts: Members, rng: random.Random) -> Members:
    meta = json.loads(parts["meta.json"])
    change_places(meta, rng)
    return {**parts, "meta.json": json.dumps(meta).encode()}


def bomb(parts: Members, rng: random.Random) -> Members:
    """Unpacks to more than is allowed, in an array or in the description."""
    filler = rng.choice((b"\x00", b"[],", b" ", b"[", b'{"a":'))
    return {**parts, rng.choice(sorted(parts)): filler * (rng.choice((MOST, MOST // 20, MOST // 200)) // len(filler))}


def odd(parts: Members, rng: random.Random) -> Members:
    """Odd or endless words in the places where words are, the same in all that must agree; most stay good files."""
    meta = json.loads(parts["meta.json"])
    length = 0 if rng.random() < 0.6 else rng.choice(LENGTHS)
    # Endless words in twenty thousand places would be more than this process may hold, and no file that anybody sends.
    length = min(length, 2**26 // len(parts["meta.json"]))

    def words() -> str:
        return rng.choice("ab<漢é") * length if length else rng.choice(ODD)

    outputs = [words() for _ in meta["output_tokens"]]
    for step, token in zip(meta["steps"], outputs, strict=False):
        step["token"] = token
    for part in (*meta["steps"], *meta["fills"]):
        part["candidates"] = [[words(), p] for _, p in part["candidates"]]
    meta["output_tokens"] = outputs
    for name in ("source_tokens", "target_tokens", "expected_tokens", "edits"):
        meta[name] = meta[name] and [words() for _ in meta[name]]
    for name in ("source", "text", "expected", "mistake"):
        meta[name] = meta[name] and words()
    if rng.random() < 0.3:
        meta["made_by"] = {words(): rng.choice((words(), 10**400, None, [[words()]], {"a": words()})) for _ in range(3)}
        meta["made_by"]["checkpoint"] = words()
    if meta["search"]:
        for node in meta["search"]["nodes"]:
            node["token"], node["text"] = words(), words()
        meta["search"]["opening"] = [words(), *outputs[: meta["n_given"]]]
        meta["search"]["settings"] = {words(): words()}
    for group in [group for group in meta["groups"].values() if isinstance(group, dict)]:
        group["notes"] = {words(): [words()]}
    return {**parts, "meta.json": json.dumps(meta).encode()}


def counted(parts: Members, rng: random.Random) -> Members:
    """A sound run of very many, or no, tokens, layers, heads."""
    n_source, n_target = rng.choice(COUNTS), rng.choice(COUNTS)
    layers, heads = rng.choice(((1, 1), (1, 2), (1, 1), (12, 16), (1, 1100), (300, 1)))
    while layers * heads * n_target * max(n_source, n_target) > _MOST_WEIGHTS:
        n_source, n_target = n_source // 2, n_target // 2
    weights = np.full((layers, heads, n_target, n_source), 1 / max(1, n_source), np.float32)
    some: dict[str, Any] = {"output_tokens": [f"o{i}" for i in range(n_target)]} if rng.random() < 0.5 else {}
    if some and rng.random() < 0.5:
        some["probabilities"] = [0.5] * n_target
    if rng.random() < 0.5:
        some |= {"decoder": np.tril(np.ones((layers, heads, n_target, n_target))) / np.arange(1, n_target + 1)[:, None]}
        some |= {"masks": {"decoder": "causal"}}
    some |= {"source_tokens": [f"s{i}" for i in range(n_source)], "target_tokens": [f"t{i}" for i in range(n_target)]}
    try:
        return members_of(to_bytes(Trace.from_arrays(cross=weights, **some)))
    except TransformerVizError:
        return parts


def many(parts: Members, rng: random.Random) -> Members:
    """Lists of the description repeated; some of them may be as long as they like."""
    meta = json.loads(parts["meta.json"])
    names = "edits made_by steps.0.candidates search.nodes search.best search.candidates.0 search.candidate_ids source_ids"
    names += " fills.0.candidates groups.unheard_of.notes groups"
    places = [[int(key) if key.isdigit() else key for key in name.split(".")] for name in names.split()]
    for place in places:
        at: Any = meta
        try:
            for key in place[:-1]:
                at = at[key]
            found = at[place[-1]]
        except (KeyError, IndexError, TypeError):
            continue
        if found is None or rng.random() < 0.5:
            continue
        # What is repeated may be endless words already.
        times = rng.choice((2, 100, 20_000)) if len(parts["meta.json"]) < 2**16 else 2
        if isinstance(found, dict):
            at[place[-1]] = {**found, **{f"x{i}": i for i in range(times)}}
        else:
            at[place[-1]] = [*found, *(found or ["cross:off"])[:1] * times]
    return {**parts, "meta.json": json.dumps(meta).encode()}


def numbers(parts: Members, rng: random.Random) -> Members:
    """Other numbers in an array, of the same shape; or another shape, or type."""
    names = [name for name in parts if name.endswith(".npy")]
    name = rng.choice(names)
    array = np.load(io.BytesIO(parts[name]))
    way = rng.randrange(6)
    if way == 0:
        array = array.copy()
        flat = array.reshape(-1)
        for _ in range(rng.choice((1, 5, flat.size))):
            value = rng.choice((np.nan, np.inf, -np.inf, -1, 1e38, 1e-45, 0, 2, 255))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                flat[rng.randrange(flat.size)] = np.array(value).astype(array.dtype)
    elif way == 1:
        array = np.zeros_like(array)
    elif way == 2:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = array.astype(rng.choice(("<f2", "<f4", "<f8", ">f4", "u1", "<i8", "bool", "<c8")))
    elif way == 3:
        array = rng.choice((array[None], array[0], array[..., :0], array.T, array.repeat(2, -1), array.repeat(40, 0)))
    elif way == 4:
        array = np.asfortranarray(array)
    else:
        return {**parts, rng.choice(names): parts[name], f"attentions/{rng.choice(KINDS)}/scores.npy": parts[name]}
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array) if way != 4 else array)
    return {**parts, name: buffer.getvalue()}


SOUND = ("odd", "counted", "many", "numbers")
"""These may come before another: what they make can be read."""
WAYS: dict[str, Way] = {way.__name__: way for way in (inside, swapped, renamed, described, bomb, odd, counted, many, numbers)}
OFTEN = (*WAYS, *SOUND, *SOUND)


def hostile(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """A file made of a good one, and how."""
    if rng.random() < 0.15:
        whole = rng.choice((bits, cut, doubled))
        return whole.__name__, whole(data, rng)
    parts = members_of(data)
    ways = [*rng.sample(SOUND, rng.random() < 0.15), rng.choice(OFTEN)]
    for way in ways:
        parts = WAYS[way](parts, rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for member, content in parts.items():
            archive.writestr(member, content)
    return " and ".join(ways), buffer.getvalue()


# What is done with them


def try_one(folder: Path, good: list[Path], rng: random.Random, watch: Watch) -> None:
    """Loads a hostile file as the page does, draws it and compares it, and does something with it on the command line."""
    origin = rng.choice(good)
    name, data = hostile(origin.read_bytes(), rng)
    path = folder / "it.npz"
    path.write_bytes(data)
    watch.name = name
    trace = _loaded(path, watch)
    if trace is not None:
        with watch.use("look"):
            _looked_at(trace, rng)
            assert len(repr(trace)) < 1000
    _command(folder, path, origin, trace, rng, watch)


def _looked_at(trace: Trace, rng: random.Random) -> None:
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


def _loaded(path: Path, watch: Watch) -> Trace | None:
    try:
        with watch.use("load"):
            trace = load_trace(path, max_bytes=limits.LARGEST_FILE, max_unpacked=limits.MOST_UNPACKED)
            limits.check(trace, path.name)
    except TransformerVizError as refused:
        watch.check_said(str(refused).replace(watch.secret, ""))
        watch.count(type(refused).__name__)
        return None
    watch.count("drawn")
    return trace


def _command(folder: Path, path: Path, origin: Path, trace: Trace | None, rng: random.Random, watch: Watch) -> None:
    """One of the commands that read a trace, with the names of files only."""
    way = rng.randrange(4)
    if way == 0:
        other = rng.choice((path.name, origin.name))
        more = rng.choice(([], ["--json"], ["--tolerance", "0.5"]))
        code, out = watch.command("diff", *rng.sample([path.name, other], 2), *more, codes=(0, 1, 2))
        assert code == 2 or more == ["--json"] or all(len(line) < 2000 for line in out.splitlines())
        assert (code == 2) == (trace is None)
        return
    ending = "csv" if way == 1 else "html"
    what = [] if way < 3 else ["--what", rng.choice(list(WHATS))]
    kind = ["--head", rng.choice(KINDS)] if way > 1 and rng.random() < 0.3 else []
    out = folder / f"made.{ending}"
    code, _ = watch.command("render", path.name, "-o", out.name, "--force", *what, *kind)
    assert code == 2 or trace is not None
    if code == 0 and trace is not None:
        size = out.stat().st_size
        assert ending == "csv" or size < 3_000_000 + 40 * limits.n_weights(trace), f"{size / 1e6:.0f} MB"
        assert "<script>alert" not in out.read_text(encoding="utf-8").replace('""', '"') or ending == "csv"
        out.unlink()


def run(folder: Path, n: int, seed: int, *, budget: bool) -> Watch:
    """`n` hostile files, one after the other under the same name; the folder is the one in which commands run."""
    warnings.filterwarnings("ignore", message="Duplicate name")
    good = make_good(folder)
    watch = Watch(folder, budget=budget)
    rng = random.Random(seed)
    # plotly.js is most of a page, and always the same.
    with patch.object(plotly_js, "path", lambda types=(): modules.FOLDER / "arrays.js"):
        for _ in range(n):
            try_one(folder, good, rng, watch)
    return watch
