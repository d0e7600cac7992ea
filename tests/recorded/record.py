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
from tests.recorded.pages import STATES, aligned
from tests.recorded.runs import RUNS

HERE = Path(__file__).parent


def compared(title: str, recorded: fixture.Flat, now: fixture.Flat) -> list[str]:
    """What differs; the charts of a page may have changed places."""
    return fixture.differences(title, recorded, aligned(title, recorded, now))


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
        for line in compared(title, before[title], now[title]) if title in before else ():
            print(f"  {line}")
    all_of_them = before | now
    fixture.write(file, {title: all_of_them[title] for title in table if title in all_of_them})


def main() -> None:
    """Both tables, or one."""
    table, *words = sys.argv[1:] or [""]
    tables: dict[str, dict[str, Callable[[Path], Any]]] = {"runs": RUNS, "pages": STATES}
    for name in tables if table not in tables else [table]:
        record(HERE / name, tables[name], words)


if __name__ == "__main__":
    main()
