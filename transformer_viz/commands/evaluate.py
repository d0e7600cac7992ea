"""Judge a checkpoint on fresh strings of every length and source."""

import argparse
from typing import Any

from transformer_viz.commands import _shared

HELP = "exact match and head mass on texts that training did not see"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model and the sample."""
    _shared.add_model(parser)
    parser.add_argument("--samples", type=int, default=10_000, metavar="N", help="strings in total, split evenly (10000)")
    parser.add_argument(
        "--seed",
        type=_shared.whole(0, _shared.LARGEST_SEED),
        default=0,
        metavar="N",
        help="another seed draws other strings (0)",
    )
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0: numbers are no verdict."""
    from transformer_viz.checkpoints import load_checkpoint
    from transformer_viz.runs.evaluate import evaluate

    checkpoint = load_checkpoint(arguments.checkpoint, arguments.device)
    result = evaluate(checkpoint, arguments.samples, arguments.seed)
    if arguments.json:
        _shared.print_json({"checkpoint": checkpoint.name, "device": checkpoint.device_title, **result})
    else:
        print_table(result)
    return 0


_JUDGED_BY = {
    "held-out": "texts that training never saw",
    "fresh": "texts drawn anew",
    "trained": "texts, the same that it was trained on",
}


def print_table(result: dict[str, Any]) -> None:
    """The evaluation for people."""
    what = _JUDGED_BY[result.get("judged_by", "fresh")]
    print(f"exact match   {result['exact_match']:.4f}   of {result['samples']} {what}, seed {result['seed']}")
    if result.get("bleu") is not None:
        print(f"BLEU          {result['bleu']:.2f}")
    if best := result.get("best_head"):
        place = f"layer {best['layer'] + 1} head {best['head'] + 1}"
        print(f"best head     {result['best_head_mass']:.4f}   of its mass on the true key, {place}")
    print("by source")
    for source, share in result["by_source"].items():
        print(f"  {_shared.visible(source):14}{share:.4f}")
    print("by length")
    for length, share in result["by_length"].items():
        print(f"  {length:14}{share:.4f}")
    for failure in result["failures"]:
        print(f"wrong: “{_shared.visible(failure['source'])}” became “{_shared.visible(failure['output'])}”")
