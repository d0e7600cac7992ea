"""Damaged checkpoints by a seeded generator, and everything that is done with a checkpoint done with each."""

import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.checkpoints.tiny import tiny_model
from tests.conftest import write_snapshots
from tests.fuzz.mutations import HTML, VALUES, bits, change_places, cut, doubled, some_place
from tests.fuzz.watch import Watch
from transformer_viz import checkpoints, tasks
from transformer_viz.checkpoints import load_checkpoint, load_snapshot, save_checkpoint, snapshots
from transformer_viz.errors import TransformerVizError
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.recipes import recipe_for
from transformer_viz.training.saved_state import STATE, check_folder

RAW = ("NaN", "-Infinity", "1e999", "1" * 5000, '"\\ud800"', "[" * 500 + "]" * 500, '{"a":1,"a":2}', "[" * 99999, "01")
_TYPES = (torch.int32, torch.bool, torch.bfloat16, torch.float16, torch.complex64)
Damage = Callable[[Path, random.Random], None]


# Good ones


def make_good(home: Path) -> list[Path]:
    """One checkpoint of each kind that differs in how it is read."""
    kinds: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
        ("reverse", {"alphabet": "-abc d\\", "max_length": 7, "trained_lengths": [2, 4]}, {}),
        ("numbers", {}, {"position": "learned", "norm": "post"}),
        ("german-toy", {}, {"tied_embeddings": "output", "d_k": 2, "d_v": 3}),
        ("sort", {"alphabet": "abcdef"}, {"tied_embeddings": "all", "n_decoder_layers": 1, "position": "none"}),
    )
    return [_save(home / f"good-{name}", name, options, model) for name, options, model in kinds]


def _save(folder: Path, name: str, options: dict[str, Any], more: dict[str, Any]) -> Path:
    task = tasks.make_task(name, options)
    model = tiny_model(5, task, max_positions=40, **more)
    head = {"best_head": {"layer": 0, "head": 2}, "best_head_mass": 0.125, "judged_by": "fresh", "samples": 10}
    metrics = {"exact_match": 0.25, **head, "failures": [{"source": "ab", "output": "a"}], "by_length": {"2": 0.5}}
    recipe = recipe_for("reverse").to_json()
    save_checkpoint(folder, model, task, variant="pre-norm", recipe=recipe, metrics=metrics, history=[{"step": 1, "loss": 2.0}])
    write_snapshots(folder, (0, 1, 3))
    save_file({"model.x": torch.zeros(1)}, folder / STATE, {"state": json.dumps({"step": 1, "history": []})})
    return folder


# What is done to them


def field(folder: Path, rng: random.Random) -> None:
    data = _config(folder)
    change_places(data, rng)
    _write(folder, json.dumps(data))


def raw(folder: Path, rng: random.Random) -> None:
    """A value that only the text of JSON can have."""
    data = _config(folder)
    at, key = some_place(data, rng)
    at[key] = "\0HERE"
    _write(folder, json.dumps(data).replace('"\\u0000HERE"', rng.choice(RAW)))


def text(folder: Path, rng: random.Random) -> None:
    """The text of the description damaged."""
    path = folder / "config.json"
    data = path.read_bytes()
    whole = (b"", b"null", b"{}", b"\x80\x04N.", b"\xff\xfe" + data, data + b" " * 5 * 2**20, rng.choice(RAW).encode())
    path.write_bytes(rng.choice((bits, cut, doubled))(data, rng) if rng.random() < 0.5 else rng.choice(whole))


def bytes_of_weights(folder: Path, rng: random.Random) -> None:
    """A file of weights, a snapshot or the state of a training with other bytes."""
    path = _some_tensors(folder, rng)
    data = path.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    way = rng.randrange(4)
    if way == 0:
        data = rng.choice((bits, cut, doubled))(data, rng)
    elif way == 1:
        data = bits(data[:header], rng) + data[header:]
    elif way == 2:
        data = struct.pack("<Q", rng.choice((0, 1, header, 2**20, 2**31, 2**63, 2**64 - 1))) + data[8:]
    else:
        names = json.loads(data[8:header])
        name = rng.choice(sorted(names))
        names[name] = rng.choice(({"dtype": "F32", "shape": [2**62, 8], "data_offsets": [0, 4]}, rng.choice(VALUES)))
        text = json.dumps(names).encode()
        data = struct.pack("<Q", len(text)) + text + data[header:]
    path.write_bytes(data)


def tensors(folder: Path, rng: random.Random) -> None:
    """A whole file of other names, shapes, types or numbers."""
    path = _some_tensors(folder, rng)
    found = load_file(path)
    name = rng.choice(sorted(found))
    tensor = found.pop(name)
    changes: list[Callable[[], dict[str, torch.Tensor]]] = [
        lambda: {name: tensor.to(rng.choice(_TYPES))},
        lambda: {name: tensor[None]},
        lambda: {name: torch.full_like(tensor.float(), rng.choice((float("nan"), float("inf"), 3e38, 1e-45)))},
        lambda: {rng.choice((*HTML, "x" * 5000)): tensor},
        lambda: {name: tensor, "output.weight.weight": torch.zeros(1)},
        dict,
    ]
    save_file(found | rng.choice(changes)(), path)


def special(folder: Path, rng: random.Random) -> None:
    """No regular file under the name of one; or one with a hole."""
    names = ("config.json", "model.safetensors", "history.csv", "snapshots", STATE, "snapshots/step-000007.safetensors")
    path = folder / rng.choice((*names, "new.file"))
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    way = rng.randrange(5)
    if way == 0:
        os.mkfifo(path)
    elif way == 1:
        path.mkdir()
    elif way == 2:
        path.touch()
        os.truncate(path, rng.choice((0, 1, 8, 2**20, 2**43)))
    else:
        links = ("/dev/zero", "nowhere", path.name, "..", "/proc/self/mem", "config.json", "/etc/passwd", "/dev/fd/0")
        path.symlink_to(rng.choice(links))


def sizes(folder: Path, rng: random.Random) -> None:
    """As large as a description may say, with the weights as they were."""
    data = _config(folder)
    large = {"d_model": 8192, "d_ff": 65536, "max_positions": 4096, "n_encoder_layers": 64, "n_decoder_layers": 64}
    large |= {"n_heads": 128, "d_k": 8192, "source_vocabulary_size": 10**6, "target_vocabulary_size": 10**6}
    for name in rng.sample(sorted(large), rng.choice((1, 1, 2, 3, len(large)))):
        data["model"][name] = large[name]
    _write(folder, json.dumps(data))


def vocabulary(folder: Path, rng: random.Random) -> None:
    """Other tokens: odd, long, twice, very many."""
    data = _config(folder)
    tokens = data["vocabularies"][rng.choice(("source", "target"))]
    way = rng.randrange(5)
    if way == 0:
        tokens[rng.randrange(len(tokens))] = rng.choice((*HTML, "", " ", "<pad>", "a" * 200, "a" * 201, "a" * 100_000, "\x00"))
    elif way == 1:
        tokens.append(rng.choice(tokens))
    elif way == 2:
        tokens.extend(f"t{i}" for i in range(rng.choice((1, 1000, 200_000))))
    elif way == 3:
        rng.shuffle(tokens)
    else:
        del tokens[rng.randrange(len(tokens)) :]
    for side in ("source", "target"):
        data["model"][f"{side}_vocabulary_size"] = max(4, len(data["vocabularies"][side]))
    _write(folder, json.dumps(data))
    _fit_weights(folder, data["model"])


def folders(folder: Path, rng: random.Random) -> None:
    """Files and folders that do not belong there, or are not there."""
    name = rng.choice(("snapshots/step-1.safetensors", "snapshots/step-999999999.safetensors", "history.csv", "-rf", "a\nb"))
    (folder / name).write_bytes(rng.choice((b"", b"step,loss\n1,nan\n", rng.randbytes(50))))
    gone = rng.choice(("config.json", "model.safetensors", "history.csv", "snapshots", ""))
    if gone == "snapshots":
        shutil.rmtree(folder / gone)
    elif gone:
        (folder / gone).unlink()


WAYS: dict[str, Damage] = {
    way.__name__: way for way in (field, raw, text, bytes_of_weights, tensors, special, sizes, vocabulary, folders)
}
OFTEN = (*WAYS, "field", "field", "special")


def _config(folder: Path) -> Any:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


def _write(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8", errors="surrogatepass")


def _some_tensors(folder: Path, rng: random.Random) -> Path:
    return rng.choice([folder / "model.safetensors"] * 3 + [folder / "snapshots" / "step-000001.safetensors", folder / STATE])


def _fit_weights(folder: Path, settings: dict[str, Any]) -> None:
    """Weights of the sizes that the description says, where such a model can be."""
    torch.manual_seed(1)
    with suppress(TransformerVizError):
        save_file(Transformer(ModelConfig(**settings)).state_dict(), folder / "model.safetensors")


# What is done with them


def try_one(home: Path, good: list[Path], rng: random.Random, watch: Watch) -> None:
    """Damages a copy of a good checkpoint, and lists, loads, decodes, replays and resumes it."""
    bad = home / "bad"
    shutil.copytree(rng.choice(good), bad, symlinks=True)
    way = rng.choice(OFTEN)
    WAYS[way](bad, rng)
    watch.name = way
    error = _listed(bad, good, watch)
    _loaded(bad, error, rng, watch)
    _resumed(bad, watch)
    shutil.rmtree(bad)


def _listed(bad: Path, good: list[Path], watch: Watch) -> str | None:
    """Whatever the folder holds, the others are usable, and its reason stands beside them."""
    with watch.use("list"):
        entries = {entry.name: entry for entry in checkpoints.entries()}
    assert all(entries[folder.name].error is None for folder in good)
    error = entries["bad"].error
    if error is not None:
        watch.check_said(error)
    code, out = watch.command("checkpoints", "--json")
    assert code == 0
    assert {row["name"]: row["error"] for row in json.loads(out)["checkpoints"]} == {n: e.error for n, e in entries.items()}
    assert watch.command("checkpoints")[0] == 0
    watch.count("usable" if error is None else "listed with its reason")
    return error


def _loaded(bad: Path, error: str | None, rng: random.Random, watch: Watch) -> None:
    checkpoint, refused = None, ""
    try:
        with watch.use("load"):
            checkpoint = load_checkpoint("bad", "cpu")
    except TransformerVizError as said:
        refused = str(said)
    if checkpoint is None:
        watch.check_said(refused)
        assert error in (None, refused), (error, refused)
        assert watch.command("decode", "abc", "--checkpoint", "bad")[0] == 2
        return
    assert error is None, "what is listed as damaged is loaded"
    text = checkpoint.task.examples()[0].text
    watch.command("decode", "--checkpoint", "bad", "--max-length", "5", "--", text)
    watch.command("decode", "--json", "--checkpoint", "bad", "--max-length", "5", "--strategy", "beam", "--", text)
    watch.command("trace", "--checkpoint", "bad", "--max-length", "5", "--force", "-o", str(bad.parent / "run.npz"), "--", text)
    for step in list(snapshots(bad))[:3]:
        try:
            with watch.use("snapshot"):
                load_snapshot(checkpoint, step)
        except TransformerVizError as refused:
            watch.check_said(str(refused))
    watch.count("loaded")


def _resumed(bad: Path, watch: Watch) -> None:
    """Before a training goes on with the folder, and with its description for a recipe."""
    try:
        check_folder(bad, recipe_for("reverse"), resume=True, replace=False)
        Recipe.from_json(dict(checkpoints.read_description(bad).recipe))
    except TransformerVizError as refused:
        watch.check_said(str(refused).replace(watch.secret, ""))


def run(folder: Path, n: int, seed: int, *, budget: bool) -> Watch:
    """`n` damaged checkpoints, one after the other in the same home, whose folder nobody names."""
    home = folder / "home"
    good = make_good(home)
    watch = Watch(folder, budget=budget)
    rng = random.Random(seed)
    for folder in good:
        load_checkpoint(folder.name, "cpu")
    for _ in range(n):
        try_one(home, good, rng, watch)
    return watch
