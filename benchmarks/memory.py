"""Peak memory of a traced run above its loaded model, against Hugging Face's.

Each is measured in a process of its own (`python -m benchmarks.memory traced 6+6`), whose high-water mark is set back once the
model is loaded and warm. What Python and torch keep from a shorter text counts for the longer one too.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

import transformer_viz as tv
from benchmarks import decoding, marian, served
from benchmarks.measure import Line, Number, Report, Skipped, Target

TITLE = "peak memory of a traced run"
TARGETS = {"hf": Target("peak memory of a traced run above its model: times Hugging Face's, the worst case", "at most", 1, "×")}
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def measure(report: Report) -> None:
    """Every size and length of `decoding`."""
    if not _CLEAR.exists():
        raise Skipped("only Linux tells the peak of a process")
    for size in decoding.SIZES:
        mine, theirs = _in_process("traced", size), _in_process("hf", size)
        for n, ours, other in zip(decoding.LENGTHS, mine, theirs, strict=True):
            numbers = Number("ours, traced", ours / 2**20), Number("Hugging Face, traced", other / 2**20)
            report.add(Line(f"{size} layers, {n} tokens: peak memory above the model", *numbers, "MB", 1))
            report.worst("hf", ours / max(1, other), "at most")


def _in_process(way: str, size: str) -> list[int]:
    """Bytes for each length."""
    command = [sys.executable, "-m", "benchmarks.memory", way, size]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=served.ROOT)
    if done.returncode:
        raise Skipped(f"{way} {size} ended with {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _bytes_of(field: str) -> int:
    """`VmRSS`, what is in memory now, or `VmHWM`, the most since the mark was set back."""
    found = re.search(rf"^{field}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    assert found is not None, f"{field} is not in {_STATUS}"
    return 1024 * int(found[1])


def _main(way: str, size: str) -> None:
    checkpoint = decoding.subject(decoding.SIZES[size], torch.device("cpu"))
    other = marian.theirs(checkpoint.network) if way == "hf" else None

    def run(n: int) -> Any:
        if other is None:
            return tv.decode(checkpoint, decoding.text_of(n), max_length=n)
        return marian.generated(other, decoding.source_of(checkpoint, n), n)

    run(4)
    before, peaks = _bytes_of("VmRSS"), []
    for n in decoding.LENGTHS:
        _CLEAR.write_text("5")
        kept = run(n)
        peaks.append(_bytes_of("VmHWM") - before)
        del kept
    print(json.dumps(peaks))


if __name__ == "__main__":
    _main(*sys.argv[1:])
