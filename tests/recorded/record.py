"""Records anew: `python -m tests.recorded.record [runs|pages] [words of a name …]`. Says what differs from the record before.

Only what has these words in its name is recorded anew; without any, everything.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.recorded import fixture

HERE = Path(__file__).parent


def record(file: Path, table: dict[str, Callable[[Path], Any]], words: list[str]) -> None:
    """Writes the fixture of a table of functions."""
    before = fixture.read(file) if file.with_suffix(".json").exists() else {}
    now = {}
    for title, function in table.items():
        if words and not any(word in title for word in words):
            continue
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            now[title] = fixture.kept(function(Path(folder)))
        print(f"{time.perf_counter() - begun:6.2f} s  {len(now[title]):5}  {title}", flush=True)
        for line in fixture.differences(title, before.get(title, now[title]), now[title]) if title in before else ():
            print(f"  {line}")
    fixture.write(file, now | {title: leaves for title, leaves in before.items() if title not in now})


def main() -> None:
    from tests.recorded.runs import RUNS

    record(HERE / "runs", RUNS, sys.argv[2:])


if __name__ == "__main__":
    main()
