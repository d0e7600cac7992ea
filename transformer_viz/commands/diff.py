"""The command `diff`."""

from pathlib import Path
from typing import Annotated, Any

from transformer_viz.commands._shared import Json, NoLimits, load_trace, print_json, print_lines
from transformer_viz.schema import Range


def run(
    before: Annotated[Path, "the first run"],
    after: Annotated[Path, "the second run; sizes are B − A"],
    tolerance: Annotated[float, "numbers may differ by this much; 0: equal to the last bit", Range(0)] = 0.0,
    ignore: Annotated[list[str] | None, "a part that is not compared, model for instance; may be repeated"] = None,
    no_limits: NoLimits = False,
    json: Json = False,
) -> int:
    """Compare two trace files: what differs between the runs, and where. Exit code 0: equal, 1: different.

    Times, devices and versions are notes.
    """
    from transformer_viz.analysis.diff import diff

    traces = (load_trace(path, no_limits=no_limits) for path in (before, after))
    parts: Any = ignore or ()  # diff refuses what is no part
    differences = diff(*traces, tolerance=tolerance, ignore=parts)
    if json:
        print_json({"before": str(before), "after": str(after), **differences.to_json()})
    else:
        print_lines(str(differences))
    return 0 if differences.equal else 1
