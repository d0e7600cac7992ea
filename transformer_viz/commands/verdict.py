"""Whether attention points where the cause is: every head, layer and measure, over texts of the task or your own."""

import argparse
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from transformer_viz.commands import _shared
from transformer_viz.errors import OptionError

if TYPE_CHECKING:
    from transformer_viz.analysis.faithfulness import MeanCurve
    from transformer_viz.analysis.verdict import Mean, Verdicts

HELP = "whether maps of attention point where the cause is, over many texts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, its texts, how tokens are taken away, and curves."""
    _shared.add_model(parser)
    parser.add_argument("--text", action="append", metavar="TEXT", help="a text to judge; by default drawn from the task")
    parser.add_argument(
        "--samples", type=_shared.whole(1, 1000), default=40, metavar="N", help="without --text: how many texts are drawn (40)"
    )
    _shared.add_seed(parser, "another seed draws other texts, and resamples in another way")
    parser.add_argument("--mode", default="word", help="how a token is taken away: word, position or deleted (word)")
    parser.add_argument("--kind", help="whose keys: cross or decoder (cross, where there is an encoder)")
    parser.add_argument("--max-length", type=int, metavar="N", help="the most tokens to write, <end> included (the model's)")
    parser.add_argument(
        "--curve", action="append", default=[], metavar="MAP", help="also the faithfulness curve of a map, for example 'L2 H1'"
    )
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0: numbers are no verdict on anybody."""
    from transformer_viz.attribution.verdict import faithfulness, texts_of, verdict
    from transformer_viz.tracing.decode import decode

    model = _shared.loaded(arguments)
    if arguments.text is None and model.task is None:
        raise OptionError(f"{model.name} has no task that texts could be drawn from; give --text")
    texts = arguments.text or texts_of(model, arguments.samples, arguments.seed)
    traces = [decode(model, text, max_length=arguments.max_length) for text in texts]
    how = {"mode": arguments.mode, "kind": arguments.kind, "seed": arguments.seed}
    found = verdict(model, traces, **how)
    curves = faithfulness(model, traces, arguments.curve, **how) if arguments.curve else ()
    if arguments.json:
        about = {"checkpoint": model.name, **asdict(found), "curves": [asdict(curve) for curve in curves]}
        _shared.print_json(_plain(about))
        return 0
    _print(found)
    for curve in curves:
        _print_curve(curve)
    return 0


def _print(found: "Verdicts") -> None:
    taken = f"{found.n_judged} steps of {found.n_texts} texts; {found.n_left_out} steps left out, without a cause or a choice"
    print(f"cause by {found.mode}, {found.kind}: {taken}")
    print(f"{'':24}{'points at the cause':>28}{'rank correlation':>26}")
    print(f"{'by chance':24}{_mean(found.chance):>28}")
    for each in found.maps:
        print(f"{each.name:24}{_mean(each.top):>28}{_mean(each.rho):>26}")
    for method, why in found.missing.items():
        print(f"{method:24}{_shared.visible(why)}")


def _print_curve(curve: "MeanCurve") -> None:
    from transformer_viz.analysis.faithfulness import KS

    for what in ("comprehensiveness", "sufficiency"):
        each = zip(KS, getattr(curve, what), strict=True)
        print(f"{curve.name:24}{what:>18}  " + "  ".join(f"{k}: {mean.value:.3f}" for k, mean in each))


def _mean(mean: "Mean") -> str:
    if math.isnan(mean.value):
        return "-"
    return f"{mean.value:.3f}" + ("" if mean.interval is None else f" ({mean.interval[0]:.3f} to {mean.interval[1]:.3f})")


def _plain(part: Any) -> Any:
    """As JSON has it: what is no number is null."""
    if isinstance(part, dict):
        return {name: _plain(each) for name, each in part.items()}
    if isinstance(part, list | tuple):
        return [_plain(each) for each in part]
    return None if isinstance(part, float) and not math.isfinite(part) else part
