"""Decode a text and save the whole run, every attention and mask, as a file."""

import argparse
from pathlib import Path

from transformer_viz.commands import _shared
from transformer_viz.errors import OptionError

HELP = "decode a text and save the trace"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TEXT, the model, the strategy, the file."""
    _shared.add_text(parser)
    _shared.add_model(parser)
    _shared.add_decoding(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE.npz", type=Path, help="where to write")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")


def run(arguments: argparse.Namespace) -> int:
    """0 when the file is written."""
    path: Path = arguments.output
    _check(path, arguments.force)
    text = _shared.read_text(arguments.text)

    from transformer_viz.tracing.decode import decode

    model = _shared.loaded_to_decode(arguments)
    trace = decode(model, text, **_shared.decoding(arguments, model))
    try:
        trace.save(path)
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror}.") from error
    print(f"{_shared.visible(str(path))}: {_shared.visible_run(trace.text)}")
    return 0


def _check(path: Path, force: bool) -> None:
    """Finds out before the model is loaded whether the file may be written."""
    if path.suffix != ".npz":
        raise OptionError(f"{path} does not end in .npz, as a trace file does.")
    if path.is_dir():
        raise OptionError(f"{path} is a folder. Choose another name.")
    if path.exists() and not force:
        raise OptionError(f"{path} exists already. Choose another name, or replace it with --force.")
    if not path.parent.is_dir():
        raise OptionError(f"There is no folder {path.parent}. Make it first.")
