"""Which heads of cross-attention align, over sentence pairs: by links, by agreement with another head, by effect."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_viz.addresses import parse_head
from transformer_viz.commands import _shared
from transformer_viz.errors import FileError, InputError, OptionError
from transformer_viz.numbers_in_words import count_words

if TYPE_CHECKING:
    from transformer_viz.analysis.alignment_heads import AlignmentHeads
    from transformer_viz.loaded_model import LoadedModel

HELP = "which heads of cross-attention align a text with its translation"
_LARGEST_FILE = 10_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, texts with their translations, links, and what heads are compared with."""
    _shared.add_model(parser)
    given, file = parser.add_mutually_exclusive_group(), _shared.existing_file
    given.add_argument("--texts", metavar="FILE", type=file, help="what it reads, a text a line (drawn from the task)")
    given.add_argument("--gold", metavar="FROM-TO", help="40 pairs that come with the program, aligned by hand: pt-en or en-pt")
    words = "what it should write, line by line (the true answer, or what it writes)"
    parser.add_argument("--targets", metavar="FILE", type=file, help=words)
    words = "words that say the same, line by line, as 0-0 1-2; punctuation is apart"
    parser.add_argument("--links", metavar="FILE", type=file, help=words)
    parser.add_argument("--reference", type=_head, metavar="HEAD", help="what others are compared with, as 'L2 H1' (the best)")
    parser.add_argument("--no-effect", action="store_true", help="take no head away, which takes most of the time")
    parser.add_argument(
        "--samples", type=_shared.whole(1, 1000), default=40, metavar="N", help="without --texts: how many texts are drawn (40)"
    )
    _shared.add_seed(parser, "another seed draws other texts")
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0: numbers are no verdict."""
    from transformer_viz.analysis.word_links import gold

    if (arguments.targets or arguments.links) and not arguments.texts:
        raise OptionError("--targets and --links go with the lines of --texts; give that too")
    given, targets, links = (_lines(f"--{name}", getattr(arguments, name)) for name in ("texts", "targets", "links"))
    if arguments.gold is not None:
        gold(arguments.gold)
    _shared.look_up(arguments)

    from tqdm import tqdm

    from transformer_viz.attribution.alignment_heads import alignment_heads

    model = _shared.loaded(arguments)
    texts, targets, links = _pairs(arguments, model) if given is None else (given, targets, links)
    with tqdm(total=1.0, file=sys.stderr, bar_format="{percentage:3.0f} % |{bar}|", disable=None) as bar:
        found = alignment_heads(
            model,
            texts,
            targets=targets,
            links=links,
            reference=arguments.reference,
            effect=not arguments.no_effect,
            on_progress=lambda share: bar.update(share - bar.n),
        )
    if arguments.json:
        about = {"checkpoint": model.name, **asdict(found), "alignment_heads": found.alignment_heads}
        _shared.print_json(_shared.finite(about))
        return 0
    _print(found)
    return 0


def _pairs(arguments: argparse.Namespace, model: "LoadedModel") -> "tuple[Sequence[str], Sequence[str] | None, Any]":
    """Texts, targets and links where no file has them."""
    from transformer_viz.analysis.word_links import gold
    from transformer_viz.attribution.verdict import texts_of

    if arguments.gold is not None:
        return gold(arguments.gold)
    if model.task is None:
        raise OptionError(f"{model.name} has no task that texts could be drawn from; give --texts or --gold")
    return texts_of(model, arguments.samples, arguments.seed), None, None


def _head(text: str) -> tuple[int, int]:
    """As people write it, from 1: `L2 H1`, or `2.1`."""
    if (head := parse_head(text)) is None:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no head; write it as 'L2 H1', both from 1")
    return head


def _lines(option: str, path: Path | None) -> list[str] | None:
    from transformer_viz.reading import text_of

    if path is None:
        return None
    try:
        return text_of(path, _LARGEST_FILE).splitlines()
    except FileError as error:
        raise InputError(f"{option}: {_shared.visible(str(path))} is not read: {error}.") from error


def _print(found: "AlignmentHeads") -> None:
    from transformer_viz.analysis.alignment_heads import ROW_WORDS
    from transformer_viz.terms import head_label

    truth = {"links": "the links given", "task": "the task's own alignment", None: "none is known"}
    judged = f"{count_words(found.n_words, found.unit)} of {count_words(found.n_texts, 'text')}"
    links = f"{count_words(found.n_links, 'link')}: {truth[found.truth]}"
    print(f"{judged}; {links}; ranked by {'the row that writes a word' if found.truth else 'agreement'}")
    columns = ("AER writing", "AER reading", "better row", "precision", "recall", f"as {head_label(*found.reference)}")
    print(f"{'head':10}{''.join(f'{name:>12}' for name in columns)}{'change of log p a token':>32}")
    for each in found.heads:
        errors, others = each.errors.values(), (each.precision, each.recall, each.agreement)
        effect = "-" if each.effect is None else _shared.mean_words(each.effect)
        row = each.row if found.truth else "-"
        cells = "".join(f"{cell:>12}" for cell in (*map(_shared.cell, errors), row, *map(_shared.cell, others)))
        print(f"{each!s:10}{cells}{effect:>32}")
    for average in found.averages:
        best, named = found.best(average.row), " + ".join(head_label(*head) for head in average.heads)
        errors = f"{best} alone {best.errors[average.row]:.3f}; {named} {average.error:.3f}"
        print(f"in the row that {ROW_WORDS[average.row]}: {errors}, alignment_heads={average.alignment_heads}")
    if not found.averages:
        print(f"alignment_heads={found.alignment_heads}")
