"""`evaluate` and `checkpoints`."""

import shutil

import pytest

from transformer_viz import accuracy_by_length, app_folders, evaluate, load_checkpoint

SMALL = ("--checkpoint", "tiny", "--device", "cpu", "--samples", "12")


def test_evaluate_prints_the_evaluation(home, cli):
    data, done = cli("evaluate", *SMALL, "--json").json, cli("evaluate", *SMALL)
    assert data == {"checkpoint": "tiny", "device": "cpu", **evaluate(load_checkpoint("tiny", device="cpu"), 12)}
    assert (done.code, done.err) == (0, "")
    lines, best = [line.split() for line in done.out.splitlines()], data["best_head"]
    assert lines[0][:3] == ["exact", "match", f"{data['exact_match']:.4f}"]
    assert lines[1][:3] == ["best", "head", f"{data['best_head_mass']:.4f}"]
    assert lines[1][-4:] == ["layer", str(best["layer"] + 1), "head", str(best["head"] + 1)]
    for name, share in [*data["by_source"].items(), *data["by_length"].items()]:
        assert [name, f"{share:.4f}"] in lines
    assert done.out.count("wrong: ") == len(data["failures"]) > 0


def test_checkpoints_lists_the_good_and_the_damaged(home, cli):
    shutil.copytree(home / "tiny", home / "damaged")
    (home / "damaged" / "model.safetensors").write_bytes(b"\x1b[2J")
    damaged, tiny = cli("checkpoints", "--json").json["checkpoints"]
    assert damaged["name"] == "damaged" and "model.safetensors is damaged" in damaged["error"]
    n_parameters = load_checkpoint("tiny", device="cpu").n_parameters
    assert tiny == {
        **{"name": "tiny", "folder": str(home / "tiny"), "task": "reverse", "variant": "pre-norm", "heads": 3},
        **{"encoder_layers": 1, "decoder_layers": 2, "exact_match": 0.25, "best_head_mass": 0.125, "error": None},
        **{"parameters": n_parameters, "bytes": (home / "tiny" / "model.safetensors").stat().st_size},
    }
    done = cli("checkpoints")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) == 4 and all(line.isprintable() for line in lines)
    assert lines[3] == f"what you train goes to {app_folders.trained()}"
    assert lines[2].startswith("damaged cannot be used: damaged: model.safetensors")
    assert {"tiny", "reverse", "pre-norm", "1+2x3", f"{n_parameters:,}", "0.2500", "0.1250"} <= {*lines[1].split()}


def test_no_checkpoints(cli, home, monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_VIZ_CHECKPOINTS", str(tmp_path / "nowhere"))
    assert cli("checkpoints", "--json").json == {"checkpoints": [], "trained_folder": str(app_folders.trained())}
    assert "train --recipe reverse" in cli("checkpoints").out


def test_evaluate_goes_beyond_the_lengths_of_training(home, cli):
    data, checkpoint = cli("evaluate", *SMALL, "--beyond", "3", "--json").json, load_checkpoint("tiny", device="cpu")
    plain = evaluate(checkpoint, 12)
    assert {key: data[key] for key in plain} == plain, "what was there stays as it was"
    beyond, want, best = data["beyond"], accuracy_by_length(checkpoint, [5, 6, 7], samples=4), plain["best_head"]
    assert (beyond["best_head"], beyond["samples"], beyond["trained"]) == (best, 4, [2, 4])
    lines = [line.split()[:2] for line in cli("evaluate", *SMALL, "--beyond", "3").out.splitlines()]
    for row, point in zip(beyond["lengths"], want.points, strict=True):
        assert (row["length"], row["is_trained"], row["strings"]) == (point.length, False, 4)
        assert row["exact_match"] == pytest.approx(point.exact_match, abs=1e-6)
        assert point.head_mass is not None
        assert row["best_head_mass"] == pytest.approx(point.head_mass[best["layer"]][best["head"]], abs=1e-6)
        assert [str(row["length"]), f"{row['exact_match']:.4f}"] in lines
