"""Compare two trace files: what differs between the runs, and where."""

import argparse
from pathlib import Path

from transformer_viz.commands import _shared

HELP = "compare two traces; exit 0 equal, 1 different"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Two files, how much numbers may differ, and what is not compared."""
    parser.add_argument("before", metavar="A.npz", type=Path, help="the first run")
    parser.add_argument("after", metavar="B.npz", type=Path, help="the second run; sizes are B − A")
    parser.add_argument(
        "--tolerance",
        type=_shared.decimal(0, or_equal=True),
        default=0.0,
        metavar="X",
        help="numbers may differ by this much (0: equal to the last bit)",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="PART",
        help="a part that is not compared, model for instance; may be repeated",
    )
    _shared.add_limits(parser)
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 equal, 1 different; times, devices and versions are notes."""
    from transformer_viz.analysis.diff import diff

    before, after = (_shared.load_trace(path, no_limits=arguments.no_limits) for path in (arguments.before, arguments.after))
    found = diff(before, after, tolerance=arguments.tolerance, ignore=arguments.ignore)
    if arguments.json:
        _shared.print_json({"before": str(arguments.before), "after": str(arguments.after), **found.to_json()})
    else:
        for line in str(found).splitlines():
            print(_shared.visible(line))
    return 0 if found.equal else 1
