"""The command line: `python -m transformer_viz COMMAND`. One file a command; a new one is one new file.

A command is a module here with `HELP`, `add_arguments(parser)` and `run(arguments) -> int`. Exit codes:
0 good, 1 a negative verdict, 2 the user's mistake, 3 our fault. torch is imported inside `run` only, so
that help and mistakes answer at once.
"""

import argparse
import os
import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import NoReturn

from transformer_viz import __version__
from transformer_viz.errors import TransformerVizError

MISTAKE, OUR_FAULT = 2, 3
DEBUG_VARIABLE = "TRANSFORMER_VIZ_DEBUG"


def names() -> list[str]:
    """All commands: `check_masks.py` is `check-masks`; modules that begin with `_` are shared parts."""
    return sorted(m.name.replace("_", "-") for m in iter_modules(__path__) if not m.name.startswith("_"))


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit code; a mistake is one line on standard error."""
    try:
        parsed = _parser().parse_args(arguments)
        return int(parsed.run(parsed))
    except TransformerVizError as error:
        _say(str(error))
        return MISTAKE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read us, `head` perhaps, has gone; Python must not complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        _say(
            f"this is our fault: {type(error).__name__}: {error}. {DEBUG_VARIABLE}=1 shows where it happened; please report it."
        )
        return OUR_FAULT


class _Parser(argparse.ArgumentParser):
    """argparse prints the whole usage at a mistake; one line says what is wrong."""

    def error(self, message: str) -> NoReturn:
        _say(f"{message}. '{self.prog} --help' shows what is possible.")
        raise SystemExit(MISTAKE)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="transformer_viz", description="See an encoder-decoder Transformer think.")
    parser.add_argument("--version", action="version", version=f"transformer_viz {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for name in names():
        module = _module(name)
        command = commands.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def _module(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name.replace('-', '_')}")


def _say(message: str) -> None:
    """One line, without anything that would act on the terminal."""
    line = " ".join(message.split())
    print("transformer_viz: " + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in line), file=sys.stderr)
