"""What a change of masks, heads or rows does to what a model writes."""

import argparse
from dataclasses import asdict

from transformer_viz.commands import _shared
from transformer_viz.errors import OptionError

HELP = "how many texts come out differently with edits or a mistake"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, its texts, and what is changed."""
    _shared.add_model(parser)
    parser.add_argument("--text", action="append", metavar="TEXT", help="a text to write for; by default drawn from the task")
    _shared.add_changes(parser, "what is changed, for example cross:3-5,decoder.2.1:zero")
    words = "without --text: how many strings are drawn (500)"
    parser.add_argument("--samples", type=_shared.whole(1, 5000), metavar="N", help=words)
    _shared.add_seed(parser, "without --text: another seed draws other strings")
    _shared.add_max_length(parser, "with --text; the model's")
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0: numbers are no verdict."""
    if not arguments.edits and arguments.mistake is None:
        raise OptionError("nothing is changed; give --edits or --mistake")
    _shared.look_up(arguments, arguments.text or ())

    from transformer_viz.mask_checks.effect import effect

    model = _shared.loaded(arguments)
    found = effect(
        model,
        arguments.text,
        edits=[arguments.edits],
        mistake=arguments.mistake,
        samples=arguments.samples,
        seed=arguments.seed,
        max_length=arguments.max_length,
    )
    if arguments.json:
        about = {"checkpoint": model.name, "edits": arguments.edits, "mistake": arguments.mistake}
        _shared.print_json({**about, **asdict(found)})
        return 0
    print(f"changed       {found.changed:.4f}   of {found.samples} {'texts' if arguments.text else 'fresh strings'}")
    if found.exact_before is not None:
        print(f"exact match   {found.exact_before:.4f} without the change, {found.exact_after:.4f} with it")
    return 0
