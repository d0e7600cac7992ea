"""Every way in which a checkpoint folder can be missing, damaged or hostile: it is refused, and the others are not."""

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.checkpoints.tiny import tiny_model
from transformer_viz import checkpoints, load_checkpoint
from transformer_viz.errors import CheckpointError


def edited(home: Path, **changes: Any) -> Path:
    """A copy of the good folder with another config.json."""
    shutil.copytree(home / "good", home / "bad")
    path = home / "bad" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")
    return home / "bad"


def refusal(home: Path, name: str = "bad") -> str:
    """The message with which loading is refused; `entries()` must go on, with the reason beside the damaged one."""
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(name, device="cpu")
    found = {entry.name: entry for entry in checkpoints.entries()}
    assert found["good"].error is None
    assert load_checkpoint("good", device="cpu").name == "good"
    assert name in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(home, name):
    shutil.copytree(home / "good", home / "bad")
    (home / "bad" / name).unlink()
    assert name in refusal(home)
    (home / "bad" / name).mkdir()
    assert name in refusal(home)


def test_an_empty_folder_and_foreign_files_do_not_stop_the_others(home):
    (home / "bad").mkdir()
    (home / "a file.txt").write_text("x")
    (home / ".hidden").mkdir()
    assert "config.json is missing" in refusal(home)
    assert [entry.name for entry in checkpoints.entries()] == ["bad", "good"]
    assert checkpoints.entries()[0].summary == {}
    assert checkpoints.entries()[1].summary["variant"] == "pre-norm"


def test_truncated_and_changed_weights(home):
    shutil.copytree(home / "good", home / "bad")
    path = home / "bad" / "model.safetensors"
    data = path.read_bytes()
    for end in [*range(0, 200, 7), *range(200, len(data), 997), len(data) - 1]:
        path.write_bytes(data[:end])
        with pytest.raises(CheckpointError, match=r"model\.safetensors"):
            load_checkpoint("bad", device="cpu")
    assert "model.safetensors" in refusal(home)
    rng = random.Random(0)
    header = 8 + int.from_bytes(data[:8], "little")
    for _ in range(200):
        broken = bytearray(data)
        broken[rng.randrange(header)] = rng.randrange(256)
        path.write_bytes(bytes(broken))
        try:
            load_checkpoint("bad", device="cpu")
        except CheckpointError:
            continue


def test_a_pickled_checkpoint_is_not_opened(home):
    shutil.copytree(home / "good", home / "bad")
    torch.save(tiny_model().state_dict(), home / "bad" / "model.safetensors")
    assert "damaged" in refusal(home)


def change_weights(home: Path, change) -> None:
    shutil.copytree(home / "good", home / "bad")
    path = home / "bad" / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path)


def test_renamed_weights_are_listed(home):
    def rename(weights):
        weights["decoder.0.attention.q.weight"] = weights.pop("decoder.0.attention.query.weight")

    change_weights(home, rename)
    message = refusal(home)
    assert "missing decoder.0.attention.query.weight" in message
    assert "unexpected decoder.0.attention.q.weight" in message
    assert {e.name: bool(e.error) for e in checkpoints.entries()} == {"bad": True, "good": False}


def test_wrong_shapes_are_listed(home):
    def transpose(weights):
        weights["output.weight"] = weights["output.weight"].T.contiguous()

    change_weights(home, transpose)
    message = refusal(home)
    assert "output.weight is [6, 8] and should be [8, 6]" in message


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(home, value):
    change_weights(home, lambda weights: weights["output.bias"].fill_(value))
    assert "not finite" in refusal(home)


def test_whole_numbers_are_no_weights(home):
    def to_integers(weights):
        weights["output.bias"] = weights["output.bias"].to(torch.int32)

    change_weights(home, to_integers)
    message = refusal(home)
    assert "I32" in message


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '"x"', '{"model_type": "bert"}', "\xff\xfe", "[" * 100_000, '{"format": 1}', "1" * 5000],
    ids=lambda t: t[:20],
)
def test_foreign_json(home, text):
    shutil.copytree(home / "good", home / "bad")
    (home / "bad" / "config.json").write_bytes(text.encode("latin1"))
    assert "config.json" in refusal(home)


@pytest.mark.parametrize("number", [0, 2, 99])
def test_other_formats_are_named(home, number):
    edited(home, format=number)
    message = refusal(home)
    assert f"format {number}" in message
    assert "format 1" in message


MODEL = {**tiny_model().config.to_json()}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model": {}}, ["missing", "source_vocabulary_size"]),
        ({"model": {**MODEL, "d_modle": 3}}, ["d_modle", "d_model"]),
        ({"model": {**MODEL, "d_model": -6}}, ["d_model=-6"]),
        ({"model": {**MODEL, "d_model": 10**12}}, ["d_model=1000000000000"]),
        ({"model": {**MODEL, "d_model": 8190}}, ["is [6] and should be [8190]", "more"]),
        ({"model": {**MODEL, "n_heads": [3]}}, ["n_heads=[3]"]),
        ({"model": {**MODEL, "norm": {"a": 1}}}, ["norm="]),
        ({"model": {**MODEL, "dropout": "x"}}, ["dropout='x'"]),
        ({"model": {**MODEL, "n_decoder_layers": 3}}, ["missing decoder.2"]),
        ({"task": {}}, ["None", "reverse"]),
        ({"task": {"name": "../x", "options": {}}}, ["'../x'", "reverse"]),
        ({"task": {"name": ["reverse"], "options": {}}}, ["reverse"]),
        ({"task": {"name": "reverse", "options": ["alphabet"]}}, ["options"]),
        ({"task": {"name": "reverse", "options": "abcd"}}, ["options"]),
        ({"task": {"name": "reverse", "options": 5}}, ["options"]),
        ({"task": {"name": "reverse", "options": {"alphabet": 5}}}, ["alphabet=5"]),
        ({"task": {"name": "reverse", "options": {"alphabet": "abcd", "trained_lengths": 5}}}, ["trained_lengths"]),
        ({"task": {"name": "reverse", "options": {"alphabet": "abdc"}}}, ["vocabulary"]),
        ({"task": {"name": "reverse", "options": {"alphabet": "abcde"}}}, ["vocabulary"]),
        ({"vocabularies": {}}, ["vocabulary"]),
        ({"vocabularies": {"source": 5, "target": None}}, ["vocabulary"]),
        ({"variant": 5}, ["config.json"]),
        ({"variant": "<b>" * 1000}, ["variant", "no name"]),
        ({"format": True}, ["format True"]),
        ({"vocabularies": {"source": ["<pad>", "<start>", "<end>", "<unk>", "a" * 201], "target": []}}, ["201 characters"]),
        ({"recipe": []}, ["config.json"]),
        ({"metrics": None}, ["config.json"]),
    ],
    ids=str,
)
def test_impossible_descriptions_are_refused_and_stop_nothing(home, changes, named):
    edited(home, **changes)
    message = refusal(home)
    for part in named:
        assert part in message
    assert {entry.name for entry in checkpoints.entries() if entry.error} == {"bad"}


@pytest.mark.parametrize("option", ["alphabet", "max_length", "trained_lengths", "held_out_share", "by"])
@pytest.mark.parametrize("value", [["x"] * 250_000, "ab" * 500_000, {"y" * 1_000_000: 1}], ids=["list", "text", "object"])
def test_an_option_of_a_megabyte_is_not_repeated(home, option, value):
    name = "shift" if option == "by" else "reverse"
    edited(home, task={"name": name, "options": {"alphabet": "abcd", option: value}})
    message = refusal(home)
    assert option in message and "is not possible; " in message
    assert len(message) < 400


WRONG: list[Any] = [None, True, -1, 0.5, 1e300, 10**400, "2", "", [2], {"a": 2}]


@pytest.mark.parametrize("name", MODEL)
def test_every_setting_of_the_model_has_its_type_and_range(home, name):
    """None of these values is possible for any setting, but for `null` widths of a head, switches and a dropout of 0.5."""
    shutil.copytree(home / "good", home / "bad")
    path = home / "bad" / "config.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    for value in WRONG:
        path.write_text(json.dumps({**data, "model": {**data["model"], name: value}}), encoding="utf-8")
        found = {entry.name: entry.error for entry in checkpoints.entries()}
        assert found["good"] is None
        is_possible = (
            (value is None and name in ("d_k", "d_v")) or (value == 0.5 and name == "dropout") or value is data["model"][name]
        )
        if not is_possible:
            assert found["bad"] is not None, value
            assert "config.json" in found["bad"] and len(found["bad"]) < 1000, found["bad"]


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("other", ["pipe", "endless device", "loop", "hole"])
def test_what_is_no_file_stops_nothing(home, name, other):
    """A pipe would block whoever reads it, a device would be read for ever, a file with a hole take all memory."""
    shutil.copytree(home / "good", home / "bad")
    path = home / "bad" / name
    path.unlink()
    if other == "pipe":
        os.mkfifo(path)
    elif other == "hole":
        path.touch()
        os.truncate(path, 2**44 - 4096)
    else:
        path.symlink_to("/dev/zero" if other == "endless device" else path.name)
    assert name in refusal(home)


def test_snapshots_that_are_no_files_are_no_snapshots(home):
    folder = home / "good" / "snapshots"
    folder.mkdir()
    shutil.copy(home / "good" / "model.safetensors", folder / "step-000003.safetensors")
    os.mkfifo(folder / "step-000004.safetensors")
    (folder / "step-000005.safetensors").mkdir()
    (folder / "step-000006.safetensors").symlink_to("nowhere")
    (folder / "step-000007.safetensors").symlink_to("step-000003.safetensors")
    assert list(checkpoints.snapshots(home / "good")) == [3, 7]


def test_an_absurdly_large_description_is_not_read(home, monkeypatch):
    monkeypatch.setattr(checkpoints, "LARGEST_CONFIG", 10_000)
    edited(home, metrics={"x": "y" * 20_000})
    assert "at most 10,000 are read" in refusal(home)


@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": {"best_head": {"layer": 2, "head": 0}}},
        {"metrics": {"best_head": {"layer": -1, "head": 0}}},
        {"metrics": {"best_head": {"layer": 0, "head": 3}}},
        {"metrics": {"best_head": {"layer": True, "head": 0}}},
        {"metrics": {"best_head": "<b>"}},
        {"metrics": {"exact_match": "good"}},
        {"metrics": {"samples": None}},
        {"metrics": {"samples": 10**400}},
        {"metrics": {"judged_by": ["fresh"]}},
        {"metrics": {"failures": {"source": "x"}}},
        {"recipe": {"longest": 10**9, "lengths": "growing"}},
        {"metrics": {"failures": "all"}},
        {"metrics": {"failures": [{"source": 3}]}},
        {"recipe": {"sharpness": "<b>"}},
    ],
    ids=str,
)
def test_tampered_metrics_are_refused_because_the_page_reads_them(home, changes):
    edited(home, **changes)
    assert "metrics or the recipe" in refusal(home)


def test_real_metrics_are_accepted(home):
    metrics = {
        "best_head": {"layer": 1, "head": 2},
        "exact_match": 1,
        "samples": 3,
        "failures": [{"source": "ab", "output": ""}],
    }
    edited(home, metrics=metrics, recipe={"sharpness": 0.3})
    assert load_checkpoint("bad", "cpu").metrics == metrics
