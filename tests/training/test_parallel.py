"""Data-parallel training: two processes on the CPU, through torchrun, are one process with the doubled batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from transformer_viz import load_checkpoint
from transformer_viz.commands import main
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.training.batch import make_batch
from transformer_viz.training.parallel import ALONE, Workers

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = (
    *("reverse", "--task-options", '{"alphabet": "abcdef", "trained_lengths": [2, 6]}', "--d-model", "12", "--heads", "3"),
    *("--layers", "1", "--d-ff", "13", "--steps", "30", "--samples", "200", "--device", "cpu", "--learning-rate", "0.1"),
    # Not Adam: it makes a step out of the rounding of a gradient that is zero.
    *("--optimizer", "sgd"),
)


def test_every_row_is_seen_once_and_padded_alike():
    batch = make_batch(Reverse("abcd", 7, (1, 7)), ["abc", "d", "abcdabc", "ba", "c"])
    shares = [Workers(rank, 3).share(batch) for rank in range(3)]
    rows = [tuple(row) for share in shares for row in share.source.tolist()]
    assert sorted(rows) == sorted(map(tuple, batch.source.tolist()))
    for share in shares:
        assert share.source.shape[1] == batch.source.shape[1]
        assert share.source_padding is not None
        assert torch.equal(share.source_padding, share.source == 0)
    assert ALONE.share(batch) is batch


FORKED = """
import os, socket, sys, torch, torch._dynamo
from transformer_viz.commands import main
torch.set_num_threads(1)
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    os.environ |= {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
other = os.fork()
os.environ |= dict.fromkeys(("RANK", "LOCAL_RANK"), "1" if other == 0 else "0")
code = main(sys.argv[1:])
sys.exit(code or (os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) if other else 0))
"""
"""What torchrun does, by a fork: torch is imported once and not four times."""
LAUNCHERS = {
    "fork": ["-c", FORKED],
    "torchrun": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "transformer_viz"],
}


@pytest.mark.parametrize("launcher", ["fork", pytest.param("torchrun", marks=pytest.mark.slow)])
def test_two_processes_are_one_with_the_doubled_batch(tmp_path, launcher):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    train = ["train", *OPTIONS]
    double = [sys.executable, *LAUNCHERS[launcher], *train, "--batch-size", "7", "-o", str(tmp_path / "two")]
    done = subprocess.run(double, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("exact match") == 1, "only the first process speaks"
    assert main([*train, "--batch-size", "14", "-o", str(tmp_path / "one")]) == 0
    one, two = (load_checkpoint(str(tmp_path / name), device="cpu") for name in ("one", "two"))
    assert one.recipe == two.recipe
    assert one.recipe["batch_size"] == 14
    for name, tensor in one.model.state_dict().items():
        torch.testing.assert_close(tensor, two.model.state_dict()[name], rtol=0, atol=2e-4)
    histories = [(tmp_path / name / "history.csv").read_text().splitlines() for name in ("one", "two")]
    for line, other in zip(*histories, strict=True):
        if line.startswith("step"):
            continue
        step, loss, *_ = line.split(",")
        assert other.split(",")[0] == step
        assert float(other.split(",")[1]) == pytest.approx(float(loss), abs=1e-4)
    assert json.loads((tmp_path / "two" / "config.json").read_text())["metrics"]["samples"] == 200
