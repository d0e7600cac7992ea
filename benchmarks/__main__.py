"""Every measurement, or some: `python -m benchmarks`, `python -m benchmarks decoding pictures`. Nothing is asserted.

Prints the lines as they are found, then the table and the verdict on each target, and writes build/bench.json.
"""

import argparse
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import table
from benchmarks.machine import machine
from benchmarks.measure import Report, Skipped

GROUPS = ("decoding", "readers", "modules", "memory", "training", "pictures", "app", "start", "clients", "survey")
OUTPUT = Path("build/bench.json")


def main() -> int:
    """The command's exit code: 0, whether targets are held or not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures; every line is a ratio.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"any of {', '.join(GROUPS)}; all by default")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT, help=f"the JSON file ({OUTPUT})")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.groups if name not in GROUPS]:
        parser.error(f"there is no group {unknown[0]!r}; choose from {', '.join(GROUPS)}")
    began = time.monotonic()
    data: dict[str, Any] = {"machine": machine(), "busy": os.getloadavg()[0] > 0.5, "groups": []}
    print(table.machine_words(data))
    for name in arguments.groups or GROUPS:
        data["groups"].append(_measured(name))
    data["seconds"] = round(time.monotonic() - began)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"\n{table.markdown(data)}\n\nwritten to {arguments.output} after {data['seconds']} s\n")
    print(table.verdicts(data))
    return 0


def _measured(name: str) -> dict[str, Any]:
    """One group as plain data."""
    group = import_module(f"benchmarks.{name}")
    report, began = Report(), time.monotonic()
    print(f"\n{name}: {group.TITLE}", flush=True)
    try:
        group.measure(report)
    except Skipped as reason:
        report.remark(f"skipped: {reason}")
    return {
        "name": name,
        "title": group.TITLE,
        "seconds": round(time.monotonic() - began, 1),
        "remarks": report.remarks,
        "lines": [line.to_json() for line in report.lines],
        "targets": [target.to_json(report.values.get(key)) for key, target in group.TARGETS.items()],
    }


if __name__ == "__main__":
    sys.exit(main())
