"""`evaluate` and `checkpoints`."""

import shutil

import pytest

from transformer_viz import accuracy_by_length, app_folders, evaluate, load_checkpoint

SMALL = ("--checkpoint", "tiny", "--device", "cpu", "--samples", "12")


def test_evaluate_prints_the_evaluation(home, cli):
    done = cli("evaluate", *SMALL, "--seed", "3", "--json")
    assert (done.code, done.err) == (0, "")
    want = evaluate(load_checkpoint("tiny", device="cpu"), 12, 3)
    assert done.json == {"checkpoint": "tiny", "device": "cpu", **want}
    assert set(done.json) >= {"exact_match", "by_source", "by_length", "best_head_mass", "seed"}
    assert set(done.json["by_length"]) == {"2", "3", "4"}


def test_evaluate_for_people(home, cli):
    done = cli("evaluate", *SMALL)
    data = cli("evaluate", *SMALL, "--json").json
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines()]
    assert ["exact", "match", f"{data['exact_match']:.4f}"] == lines[0][:3]
    assert ["best", "head", f"{data['best_head_mass']:.4f}"] == lines[1][:3]
    best = data["best_head"]
    assert lines[1][-4:] == ["layer", str(best["layer"] + 1), "head", str(best["head"] + 1)]
    for name, share in [*data["by_source"].items(), *data["by_length"].items()]:
        assert [name, f"{share:.4f}"] in lines
    assert done.out.count("wrong: ") == len(data["failures"]) > 0


def test_checkpoints_lists_the_good_and_the_damaged(home, cli):
    shutil.copytree(home / "tiny", home / "damaged")
    (home / "damaged" / "model.safetensors").write_bytes(b"\x1b[2J")
    done = cli("checkpoints", "--json")
    assert (done.code, done.err) == (0, "")
    damaged, tiny = done.json["checkpoints"]
    assert damaged["name"] == "damaged"
    assert "model.safetensors is damaged" in damaged["error"]
    checkpoint = load_checkpoint("tiny", device="cpu")
    assert tiny == {
        "name": "tiny",
        "folder": str(home / "tiny"),
        "task": "reverse",
        "variant": "pre-norm",
        "encoder_layers": 1,
        "decoder_layers": 2,
        "heads": 3,
        "parameters": checkpoint.n_parameters,
        "bytes": (home / "tiny" / "model.safetensors").stat().st_size,
        "exact_match": 0.25,
        "best_head_mass": 0.125,
        "error": None,
    }
    done = cli("checkpoints")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) == 4
    assert lines[3] == f"what you train goes to {app_folders.trained()}"
    assert all(line.isprintable() for line in lines)
    assert lines[2].startswith("damaged cannot be used: damaged: model.safetensors")
    for part in ("tiny", "reverse", "pre-norm", "1+2x3", f"{checkpoint.n_parameters:,}", "0.2500", "0.1250"):
        assert part in lines[1].split()


def test_no_checkpoints(cli, home, monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_VIZ_CHECKPOINTS", str(tmp_path / "nowhere"))
    assert cli("checkpoints", "--json").json == {"checkpoints": [], "trained_folder": str(app_folders.trained())}
    done = cli("checkpoints")
    assert done.code == 0
    assert "train --recipe reverse" in done.out


def test_evaluate_goes_beyond_the_lengths_of_training(home, cli):
    done = cli("evaluate", *SMALL, "--beyond", "3", "--json")
    assert (done.code, done.err) == (0, "")
    checkpoint = load_checkpoint("tiny", device="cpu")
    plain = evaluate(checkpoint, 12)
    assert {key: done.json[key] for key in plain} == plain, "what was there stays as it was"
    beyond = done.json["beyond"]
    want = accuracy_by_length(checkpoint, [5, 6, 7], samples=4)
    best = plain["best_head"]
    assert beyond["best_head"] == best
    assert (beyond["samples"], beyond["trained"]) == (4, [2, 4])
    for row, point in zip(beyond["lengths"], want.points, strict=True):
        assert (row["length"], row["is_trained"], row["strings"]) == (point.length, False, 4)
        assert row["exact_match"] == pytest.approx(point.exact_match, abs=1e-6)
        assert point.head_mass is not None
        assert row["best_head_mass"] == pytest.approx(point.head_mass[best["layer"]][best["head"]], abs=1e-6)
    lines = [line.split() for line in cli("evaluate", *SMALL, "--beyond", "3").out.splitlines()]
    for row in beyond["lengths"]:
        assert [str(row["length"]), f"{row['exact_match']:.4f}"] in [line[:2] for line in lines]
