"""Judge a checkpoint on texts of every kind and length that training did not see."""

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from transformer_viz.commands import _shared
from transformer_viz.terms import head_title

if TYPE_CHECKING:
    from transformer_viz.checkpoints import Checkpoint

MOST_BEYOND = 1000
HELP = "exact match and head mass on texts that training did not see"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model and the sample."""
    _shared.add_checkpoint(parser)
    parser.add_argument("--samples", type=int, default=10_000, metavar="N", help="strings in total, split evenly (10000)")
    _shared.add_seed(parser, "another seed draws other strings")
    parser.add_argument(
        "--beyond",
        type=_shared.whole(1, MOST_BEYOND),
        metavar="N",
        help="also N lengths more than the longest of these, with as many strings each",
    )
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0: numbers are no verdict."""
    from transformer_viz.checkpoints import load_checkpoint, task_of

    task_of(arguments.checkpoint).check_samples(arguments.samples, "--samples ")

    from transformer_viz.evaluation.by_length import lengths_beyond
    from transformer_viz.evaluation.evaluate import evaluate

    checkpoint = load_checkpoint(arguments.checkpoint, arguments.device)
    # Found now, not after minutes of decoding.
    lengths = () if arguments.beyond is None else lengths_beyond(checkpoint, arguments.beyond)
    result = evaluate(checkpoint, arguments.samples, arguments.seed)
    beyond = _beyond(checkpoint, lengths, arguments, result.get("best_head")) if lengths else None
    if arguments.json:
        _shared.print_json({"checkpoint": checkpoint.name, "device": checkpoint.device_title, **result, **(beyond or {})})
    else:
        print_table(result)
        if beyond:
            _print_beyond(beyond["beyond"], checkpoint.name)
    return 0


def _beyond(
    checkpoint: "Checkpoint", lengths: tuple[int, ...], arguments: argparse.Namespace, best: dict[str, int] | None
) -> dict[str, Any]:
    """The lengths beyond the evaluated ones, each with as many strings as an evaluated one had; the same best head."""
    from transformer_viz.evaluation.by_length import MOST_SAMPLES, accuracy_by_length

    each = min(MOST_SAMPLES, max(1, arguments.samples // len(checkpoint.task.evaluated_lengths)))
    found = accuracy_by_length(checkpoint, lengths, each, arguments.seed)
    if best is not None:
        found = replace(found, fixed_head=(best["layer"], best["head"]))
    return {"beyond": found.to_json()}


def _print_beyond(found: dict[str, Any], name: str) -> None:
    """A table: the interval says how well a share of so few strings is known."""
    first, last = found["trained"]
    print(f"beyond, {found['samples']} strings a length; {_shared.visible(name)} was trained on {first} to {last} tokens")
    print(f"  {'length':8}{'exact':>8}{'95 % interval':>19}{'tokens right':>14}{'best head':>11}")
    for row in found["lengths"]:
        interval = f"{row['exact_match_low']:.4f}-{row['exact_match_high']:.4f}"
        mass = "-" if row["best_head_mass"] is None else f"{row['best_head_mass']:.4f}"
        words = "  trained" if row["is_trained"] else ""
        share, tokens = f"{row['exact_match']:.4f}", f"{row['token_accuracy']:.4f}"
        print(f"  {row['length']:<8}{share:>8}{interval:>19}{tokens:>14}{mass:>11}{words}")


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
        place = head_title(best["layer"], best["head"])
        print(f"best head     {result['best_head_mass']:.4f}   of its attention on the expected key, {place}")
    print("by source")
    for source, share in result["by_source"].items():
        print(f"  {_shared.visible(source):14}{share:.4f}")
    print("by length")
    for length, share in result["by_length"].items():
        print(f"  {length:14}{share:.4f}")
    for failure in result["failures"]:
        print(f"wrong: “{_shared.visible_run(failure['source'])}” became “{_shared.visible_run(failure['output'])}”")
