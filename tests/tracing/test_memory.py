"""Memory: what a run leaves behind, and the most that a large one takes, against what was predicted."""

import gc
import itertools
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tracing.memory_program import LARGE
from transformer_viz import decode

ROOT = Path(__file__).resolve().parents[2]
SLACK = 16_000_000
"""What the memory allocator keeps for later."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured on Linux only")


def measured(name: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("memory_program.py")), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_a_thousand_decodes_leave_memory_flat():
    """Of a whole process, that of torch too, which the test below does not see; all their Traces would be four times that."""
    assert measured("pages")["grown"] < 12_000_000


@pytest.mark.slow
def test_a_run_leaves_nothing_behind(tiny):
    """Guards against whatever a run might leave: on a module, in a cache, in a list of some registry.

    All are equally long: what is kept for each length is bounded, and not meant here.
    """
    ways: list[dict[str, Any]] = [{}, {"strategy": "beam"}, {"strategy": "sample"}, {"precision": "float16"}]
    texts = ["".join(text) for text in itertools.islice(itertools.permutations("helo abcd", 5), 0, 12_000, 1200)]

    def run(texts: list[str]) -> None:
        for i, text in enumerate(texts):
            decode(tiny, text, ban=["<end>"], **ways[i % 4])
        decode(tiny, texts[:7], ban=["<end>"])

    def kept() -> tuple[int, int]:
        gc.collect()
        tensors = sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())
        return tensors, tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        run(texts[:4])
        tensors, n_bytes = kept()
        run(texts[4:])
        tensors_after, bytes_after = kept()
        assert tensors_after == tensors
        assert bytes_after - n_bytes < 50_000, "their Traces together take several times that"
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_a_large_run_takes_no_more_than_predicted(name):
    """The most that the process took, against the prediction; which is not two and a half times too high either."""
    done = measured(name)
    assert done["nbytes"] <= done["arrays"]
    assert done["grown"] <= done["predicted"] + SLACK
    assert done["predicted"] <= 2.5 * done["grown"] + SLACK
