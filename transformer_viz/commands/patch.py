"""Decode two texts of one length, and find what of the first run, put into the second, makes it write what the first wrote."""

import argparse
from typing import TYPE_CHECKING, Any

from transformer_viz.commands import _shared
from transformer_viz.numbers_in_words import count_words
from transformer_viz.terms import KINDS

if TYPE_CHECKING:
    from transformer_viz.analysis.patching import Patching
    from transformer_viz.trace.trace import Trace

HELP = "what of one run, put into another, makes it write the same"
_MOST = 15
"""Places that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Two texts, the model, the strategy, what is put."""
    _shared.add_text(parser)
    parser.add_argument("other", metavar="OTHER", help="the text of the run into which it is put; as many tokens as TEXT")
    _shared.add_model(parser)
    words = "what is put: head, or layer, what all its heads add (head)"
    parser.add_argument("--by", choices=("head", "layer"), default="head", metavar="WHAT", help=words)
    parser.add_argument("--kind", choices=KINDS, metavar="KIND", help="of attention: encoder, decoder or cross (all)")
    words = "the layers of which something is put, from 1 (all, where that is not too much)"
    parser.add_argument("--layers", dest="put_layers", type=_shared.layer_numbers, metavar="N,…", help=words)
    _shared.add_decoding(parser, with_trace=False)
    _shared.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0: numbers are no verdict."""
    text = _shared.text_to_decode(arguments)
    _shared.look_up(arguments, [arguments.other])

    from transformer_viz.attribution.patch import extent, patch
    from transformer_viz.tracing.decode import decode

    model = _shared.loaded_to_decode(arguments)
    a, b = (decode(model, each, **_shared.decoding(arguments, model)) for each in (text, arguments.other))
    asked: dict[str, Any] = {"by": arguments.by, "kind": arguments.kind, "layers": arguments.put_layers}
    if not arguments.json:
        of = extent(model, a, b, **asked)
        print(
            f"{count_words(of.n_places, 'place')}, of at most {of.most:,}; for each {of.n_tokens} tokens are read again",
            flush=True,
        )
    found = patch(model, a, b, **asked)
    if arguments.json:
        _shared.print_json(
            {
                "checkpoint": model.name,
                "by": found.by,
                "step": found.step,
                "tokens": found.tokens,
                "differences": found.differences,
                "effects": {kind: effects.tolist() for kind, effects in found.effects.items()},
            }
        )
    else:
        _print(found, a)
    return 0


def _print(found: "Patching", trace: "Trace") -> None:
    ours, other = map(_shared.visible_run, found.tokens)
    of_a, of_b = found.differences
    step = found.step + 1 - trace.n_given
    print(f"the runs part at step {step}: {ours} and {other}, whose logits are {of_a:.3f} and {of_b:.3f} apart")
    print(f"share of the difference that one place brings back, the {_MOST} largest")
    for each in found.largest(_MOST):
        token = _shared.visible_run(trace.labels(each.place.kind)[0][each.query])
        print(f"{each.place!s:14} query {each.query + 1:<4} {token:12} {each.value:8.3f}")
