"""The command `diff`."""

from pathlib import Path
from typing import Annotated, Any

from transformer_viz.commands._shared import Json, NoLimits, load_trace, print_json, print_lines
from transformer_viz.schema import Range


def run(
    before: Annotated[Path, "the first run"],
    after: Annotated[Path, "the second run; differences are AFTER − BEFORE"],
    tolerance: Annotated[float, "numbers that differ by at most N count as equal", Range(0)] = 0.0,
    ignore: Annotated[list[str] | None, "do not compare this part, as in model; may be repeated"] = None,
    no_limits: NoLimits = False,
    json: Json = False,
) -> int:
    """Compare two trace files, and say what differs. Exit code 0: equal, 1: different.

    Recorded times, devices and versions are not compared.
    """
    from transformer_viz.comparison.diff import diff

    traces = (load_trace(path, no_limits=no_limits) for path in (before, after))
    parts: Any = ignore or ()  # diff refuses what is no part
    differences = diff(*traces, tolerance=tolerance, ignore=parts)
    if json:
        print_json({"before": str(before), "after": str(after), **differences.to_json()})
    else:
        print_lines(str(differences))
    return 0 if differences.equal else 1
