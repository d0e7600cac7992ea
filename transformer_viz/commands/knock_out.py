"""What a model loses without each of its heads, and how few of them suffice, over texts of the task or your own."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from transformer_viz.commands import _shared
from transformer_viz.numbers_in_words import count_words
from transformer_viz.terms import INSTEAD

if TYPE_CHECKING:
    from transformer_viz.addresses import HeadPlace
    from transformer_viz.analysis.knock_out import KnockOut

HELP = "what is lost without each head, over many texts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, its texts, what stands in a head's place."""
    _shared.add_model(parser)
    _shared.add_texts(parser)
    words = "what stands in the place of a head: zero, mean or uniform (zero)"
    parser.add_argument("--how", choices=INSTEAD, default="zero", metavar="HOW", help=words)
    parser.add_argument(
        "--suffices", type=_shared.decimal(0, or_equal=True), metavar="SHARE", help="also heads to remove one after the other, "
        "while this share of the right answers stays"
    )  # fmt: skip
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0: numbers are no verdict."""
    _shared.look_up(arguments, arguments.text or ())

    from transformer_viz.attribution.knock_out import knock_out, removed

    model = _shared.loaded(arguments)
    traces = _shared.runs_of_texts(arguments, model)
    found = knock_out(model, traces, how=arguments.how, seed=arguments.seed)
    both = None if arguments.suffices is None else removed(model, traces, how=arguments.how, least=arguments.suffices)
    if arguments.json:
        names = (
            {}
            if both is None
            else dict(zip(("removed", "left"), ([str(place) for place in each] for each in both), strict=True))
        )
        _shared.print_json(_shared.finite({"checkpoint": model.name, **asdict(found), **names}))
        return 0
    _print(found)
    if both is not None:
        _print_removed(*both)
    return 0


def _print(found: "KnockOut") -> None:
    answers = "the true answer" if found.n_known == found.n_texts else "what was written" if not found.n_known else "the answer"
    print(f"{count_words(found.n_texts, 'text')}, {answers}; in the place of a head: {found.how}")
    print(f"{'':14}{'still written':>28}{'change of log p a token':>32}")
    print(f"{'all heads':14}{_shared.mean_words(found.exact_before):>28}")
    for each in found.heads:
        print(f"{each.place!s:14}{_shared.mean_words(each.exact):>28}{_shared.mean_words(each.log_p):>32}")


def _print_removed(removed: "tuple[HeadPlace, ...]", left: "tuple[HeadPlace, ...]") -> None:
    print(f"removed, in this order: {' '.join(map(str, removed)) or 'none'}")
    print(f"what is left suffices, and none of it can be spared alone: {' '.join(map(str, left)) or 'none'}")
