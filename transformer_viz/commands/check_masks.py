"""The leak certificate: does anything that must not be seen change anything?"""

import argparse

from transformer_viz.commands import _shared

HELP = "prove that no mask leaks; exit 0 sound, 1 not"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, and what to break on purpose."""
    _shared.add_model(parser)
    parser.add_argument(
        "--text", action="append", metavar="TEXT", help="a text to check with, up to 8 of 16 tokens; by default drawn at random"
    )
    _shared.add_changes(parser, "edits to check with, for example cross:3-5,decoder:off")
    parser.add_argument(
        "--replacements",
        type=_shared.whole(1, 100),
        default=3,
        metavar="N",
        help="random replacements of each position (3)",
    )
    _shared.add_seed(parser, "another seed, other pairs")
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 sound, 1 leaking or faulty."""
    _shared.look_up(arguments, arguments.text or ())

    from transformer_viz.mask_checks.check_masks import check_masks

    model = _shared.loaded(arguments)
    report = check_masks(
        model,
        texts=arguments.text,
        mistake=arguments.mistake,
        edits=[arguments.edits],
        replacements=arguments.replacements,
        seed=arguments.seed,
    )
    if arguments.json:
        _shared.print_json({"checkpoint": model.name, "mistake": arguments.mistake, **report.to_json()})
    else:
        print(report)
    return 0 if report.sound else 1
