"""Decode a text, and ask how far weights can be moved without any output probability changing by more than a little."""

import argparse
from typing import TYPE_CHECKING, Any

from transformer_viz.commands import _shared
from transformer_viz.numbers_in_words import percent_words

if TYPE_CHECKING:
    from transformer_viz.analysis.counter_proof import CounterProof

HELP = "how far attention can be moved without the output noticing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TEXT, the model, the strategy, which heads, what goes unnoticed."""
    _shared.add_text(parser)
    _shared.add_model(parser)
    parser.add_argument(
        "--scope",
        action="append",
        metavar="HEADS",
        help="a head (cross.2.3), a layer (cross.2) or all heads of a kind (cross); may be repeated (all of them)",
    )
    parser.add_argument(
        "--epsilon",
        type=_shared.decimal(0, or_equal=False),
        default=0.01,
        metavar="X",
        help="what no output probability may change by more than (0.01)",
    )
    _shared.add_decoding(parser)
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0: numbers are no verdict."""
    text = _shared.text_to_decode(arguments)

    from transformer_viz.attribution.counter_proof import counter_proof, scopes
    from transformer_viz.tracing.decode import decode

    model = _shared.loaded_to_decode(arguments)
    trace = decode(model, text, **_shared.decoding(arguments, model))
    chosen = arguments.scope or scopes(model)
    found = [counter_proof(model, trace, scope=scope, epsilon=arguments.epsilon) for scope in chosen]
    if arguments.json:
        _shared.print_json({"checkpoint": model.name, "proofs": [_as_json(each) for each in found]})
    else:
        _print(found)
    return 0


def _as_json(found: "CounterProof") -> dict[str, Any]:
    """All but the weights."""
    names = ("target", "share", "distance", "change")
    moved = [{name: getattr(each, name) for name in names} for each in found.moved]
    return {"scope": found.scope, "epsilon": found.epsilon, "farthest": found.farthest.target, "moved": moved}


def _print(found: "list[CounterProof]") -> None:
    targets = [each.target for each in found[0].moved]
    print(f"the largest λ found with which no output probability changes by more than {found[0].epsilon:g}, towards")
    print(f"{'':14}" + "".join(f"{target:>12}" for target in targets) + "  farthest found")
    for each in found:
        shares = "".join(f"{moved.share:12.3f}" for moved in each.moved)
        farthest = f"{percent_words(each.farthest.distance)} of the weight elsewhere, {each.farthest.target}"
        print(f"{each.scope:14}{shares}  {farthest}")
