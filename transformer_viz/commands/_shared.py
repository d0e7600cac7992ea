"""What several commands need: common options, reading TEXT, printing JSON and safe text."""

import argparse
import json
import sys
from typing import Any

from transformer_viz.errors import InputError

_LONGEST_INPUT = 1_000_000


def add_model(parser: argparse.ArgumentParser) -> None:
    """`--checkpoint` and `--device`."""
    parser.add_argument(
        "--checkpoint",
        default="reverse",
        metavar="NAME",
        help="a checkpoint's name, or a folder with a path separator (reverse)",
    )
    add_device(parser)


def add_device(parser: argparse.ArgumentParser) -> None:
    """`--device`."""
    parser.add_argument(
        "--device", default="auto", help="auto, cpu, cuda or mps; auto takes the first of cuda, mps, cpu (auto)"
    )


def add_text(parser: argparse.ArgumentParser) -> None:
    """The source text."""
    parser.add_argument(
        "text", metavar="TEXT", help="the source text; - reads it from standard input; after -- it may begin with -"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def read_text(given: str) -> str:
    """TEXT itself, or standard input without its last line break."""
    if given != "-":
        return given
    try:
        text = sys.stdin.read(_LONGEST_INPUT + 1)
    except UnicodeDecodeError as error:
        raise InputError("Standard input is not UTF-8 text. Convert it, for example with iconv.") from error
    if len(text) > _LONGEST_INPUT:
        raise InputError(f"Standard input has more than {_LONGEST_INPUT} characters; give one source text.")
    return text.removesuffix("\n").removesuffix("\r")


def print_json(data: dict[str, Any]) -> None:
    """One object; ASCII only, so that it survives every terminal and pipe."""
    print(json.dumps(data, allow_nan=False))


def visible(text: str) -> str:
    """Text for a terminal: what would act on it is spelled out."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
