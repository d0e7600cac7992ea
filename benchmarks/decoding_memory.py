"""Peak memory of one way to decode, measured in a process of its own: `python -m benchmarks.decoding_memory traced 6+6`.

The kernel's high-water mark of the process is set back once the model is loaded and warm, and read after each length.
What Python and torch keep from a shorter text counts for the longer one too; lengths go up, so it is part of its peak.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import Skipped

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def in_process(module: str, *arguments: str) -> list[Any] | None:
    """What a module of benchmarks prints as JSON, here bytes above the loaded model for each length; None where it needs a
    package that is not there.

    Raises:
        Skipped: the system does not say.
    """
    if not _CLEAR.exists():
        raise Skipped("only Linux tells the peak of a process")
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).resolve().parents[1])
    if done.returncode:
        raise Skipped(f"{module} {' '.join(arguments)} ended with {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.splitlines()[-1])


def bytes_of(field: str) -> int:
    """`VmRSS`, what is in memory now, or `VmHWM`, the most since the mark was set back."""
    found = re.search(rf"^{field}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    assert found is not None, f"{field} is not in {_STATUS}"
    return 1024 * int(found[1])


def set_mark() -> None:
    """From now on `VmHWM` counts anew."""
    _CLEAR.write_text("5")


def _main(way: str, size_name: str) -> None:
    import torch

    from benchmarks import cases, marian

    size = cases.SIZES[size_name]
    torch.set_num_threads(1 if size["layers"] == 1 else torch.get_num_threads())
    checkpoint = cases.subject(size, torch.device("cpu"))
    if way == "hf":
        try:
            other = marian.theirs(checkpoint.model)
        except Skipped:
            print("null")
            return
        # Hugging Face's model is the one that is measured: ours, which it was made from, is not in the way.
        work = {n: cases.hugging_face(other, checkpoint, n) for n in (4, *cases.LENGTHS)}
    else:
        work = {n: cases.ways(checkpoint, n)[way] for n in (4, *cases.LENGTHS)}
    work[4]()
    before = bytes_of("VmRSS")
    set_mark()
    peaks = []
    for n in cases.LENGTHS:
        kept = work[n]()
        peaks.append(bytes_of("VmHWM") - before)
        del kept
    print(json.dumps(peaks))


if __name__ == "__main__":
    _main(*sys.argv[1:])
