"""Whether attention points where the cause is: every head, layer and measure, over texts of the task or your own."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from transformer_viz.commands import _shared
from transformer_viz.numbers_in_words import count_words

if TYPE_CHECKING:
    from transformer_viz.analysis.faithfulness import MeanCurve
    from transformer_viz.analysis.verdict import Verdicts

HELP = "whether maps of attention point where the cause is, over many texts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, its texts, how tokens are taken away, and curves."""
    _shared.add_model(parser)
    _shared.add_texts(parser)
    _shared.add_mode(parser)
    _shared.add_cause_kind(parser)
    parser.add_argument(
        "--curve", action="append", default=[], metavar="MAP", help="also the faithfulness curve of a map, for example 'L2 H1'"
    )
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0: numbers are no verdict on anybody."""
    _shared.look_up(arguments, arguments.text or ())

    from transformer_viz.attribution.verdict import faithfulness, verdict

    model = _shared.loaded(arguments)
    traces = _shared.runs_of_texts(arguments, model)
    how = {"mode": arguments.mode, "kind": arguments.kind, "seed": arguments.seed}
    found = verdict(model, traces, **how)
    curves = faithfulness(model, traces, arguments.curve, **how) if arguments.curve else ()
    if arguments.json:
        about = {"checkpoint": model.name, **asdict(found), "curves": [asdict(curve) for curve in curves]}
        _shared.print_json(_shared.finite(about))
        return 0
    _print(found)
    for curve in curves:
        _print_curve(curve)
    return 0


def _print(found: "Verdicts") -> None:
    from transformer_viz.analysis.verdict import FLOOR_WORDS, MAP_WORDS, left_out_words

    taken = f"{count_words(found.n_judged, 'step')} of {count_words(found.n_texts, 'text')}; {left_out_words(found)}"
    print(f"cause by {found.mode}, {found.kind}: {taken}")
    print(f"{MAP_WORDS}. Rank correlation is Spearman's; {FLOOR_WORDS}.")
    print(f"{'':24}{'points at the cause':>28}{'rank correlation':>26}")
    print(f"{'by chance':24}{_shared.mean_words(found.chance):>28}")
    for each in found.maps:
        print(f"{each.name:24}{_shared.mean_words(each.top):>28}{_shared.mean_words(each.rho):>26}")
    for method, why in found.missing.items():
        print(f"{method:24}{_shared.visible(why)}")


def _print_curve(curve: "MeanCurve") -> None:
    from transformer_viz.analysis.faithfulness import KS

    for what in ("comprehensiveness", "sufficiency"):
        each = zip(KS, getattr(curve, what), strict=True)
        print(f"{curve.name:24}{what:>18}  " + "  ".join(f"{k}: {mean.value:.3f}" for k, mean in each))
