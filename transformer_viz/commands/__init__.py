"""The command line: `python -m transformer_viz COMMAND`. One file a command; a new one is one new file.

A command is a module here with a function `run`. Its parameters are the options (`_options.py`), its docstring is the help, of
which the first sentence stands in the list of all commands, and what it returns is the exit code, or None for 0: 0 good, 1 a
negative verdict, 2 the user's mistake or a machine that refuses, 3 our fault, 128 + N ended by signal N. torch is imported
inside `run` only, so that help and mistakes answer at once.
"""

import argparse
import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from inspect import getdoc
from pkgutil import iter_modules
from typing import Any, NoReturn

from transformer_viz.commands._options import add_options, arguments_of
from transformer_viz.commands._shared import terminal_text
from transformer_viz.errors import TransformerVizError
from transformer_viz.version import __version__

MISTAKE, OUR_FAULT, INTERRUPTED = 2, 3, 130
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
DEBUG_VARIABLE = "TRANSFORMER_VIZ_DEBUG"


def names() -> list[str]:
    """Lists the commands: `check_masks.py` is `check-masks`; modules that begin with `_` are shared parts."""
    return sorted(m.name.replace("_", "-") for m in iter_modules(__path__) if not m.name.startswith("_"))


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit code; a mistake is one line on standard error."""
    try:
        run, parsed = parse(sys.argv[1:] if arguments is None else arguments)
        code = run(**parsed) or 0
    except SystemExit as stop:  # argparse: help, version, or a mistake that it has told
        code = stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = 0  # whoever read us, `head` perhaps, has seen enough
    except Exception as error:
        code = _failed(error)
    return _flushed(code)


def _failed(error: Exception) -> int:
    if isinstance(error, TransformerVizError):
        _print(str(error))
        return MISTAKE
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("transformer_viz"):
        _print(f"{error.name} is not installed for {sys.executable}. Install it with: pip install -r requirements.txt")
        return MISTAKE
    if isinstance(error, OSError) and error.strerror:  # a full disk, a folder without permission, a name that is too long
        advice = " Make room there, or write elsewhere." if error.errno in _FULL else ""
        _print(f"{error.filename or 'writing'}: {error.strerror}.{advice}")
        return MISTAKE
    if _is_out_of_memory(error):
        _print(
            f"this machine ran out of memory ({error}). End what else takes memory, or take shorter texts or a smaller model."
        )
        return MISTAKE
    _print(f"a fault of this program: {type(error).__name__}: {error}. {DEBUG_VARIABLE}=1 shows where; please report it.")
    return OUR_FAULT


def _is_out_of_memory(error: Exception) -> bool:
    """Also where torch says so in words only; what does not run in it has not imported it."""
    if "torch" not in sys.modules:
        return isinstance(error, MemoryError)
    from transformer_viz.model import devices

    return devices.is_out_of_memory(error)


def _flushed(code: int) -> int:
    """Writes out what is still buffered while an error can be told in one line; at exit Python would print a traceback."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        # Python must not complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 0
        # A command that failed has said so; one that found a difference has not, now that nobody can read it.
        return code if code >= MISTAKE else _failed(error)
    return code


class _Parser(argparse.ArgumentParser):
    """argparse prints the whole usage at a mistake; one line says what is wrong."""

    def error(self, message: str) -> NoReturn:
        _print(f"{message}. '{self.prog} --help' shows what is possible.")
        raise SystemExit(MISTAKE)


def parse(arguments: Sequence[str]) -> tuple[Callable[..., int | None], dict[str, Any]]:
    """The command that is meant, and its arguments.

    Raises:
        SystemExit: there is a mistake in them, which was told, or help was asked for.
    """
    # Abbreviated options would break as soon as a longer name joins them.
    parser = _Parser(prog="transformer_viz", description="See an encoder-decoder Transformer think.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"transformer_viz {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for name in names():
        run = import_module(f"{__name__}.{name.replace('-', '_')}").run
        text = getdoc(run) or ""
        help = text.partition("\n\n")[0].partition(". ")[0].removesuffix(".")
        command = commands.add_parser(name, help=help[:1].lower() + help[1:], description=text, allow_abbrev=False)
        command.set_defaults(run=run)
        if name in arguments:
            add_options(command, run)
    parsed = parser.parse_args(arguments)
    return parsed.run, arguments_of(parsed.run, parsed)


def _print(message: str) -> None:
    """One line, without anything that would act on the terminal."""
    # Whoever should hear it may have gone, or the full disk may be where it is written to: the exit code says it still.
    with suppress(OSError, AttributeError):
        sys.stderr.write("transformer_viz: " + terminal_text(" ".join(message.split())) + "\n")
        sys.stderr.flush()
