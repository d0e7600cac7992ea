"""Start the app in the browser."""

import argparse
import os
import runpy
import socket
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformer_viz import places, serving
from transformer_viz.commands import _shared
from transformer_viz.errors import ModelError, OptionError

HELP = "start the app"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where it listens, and what else Streamlit should know."""
    parser.add_argument("--port", type=_shared.whole(1, 65535), default=8501, metavar="N", help="(8501)")
    parser.add_argument(
        "--address", default="localhost", help="localhost is this machine only; 0.0.0.0 lets the room in (localhost)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name under which the app may be opened, beside this machine's own; may be given several times",
    )
    parser.add_argument(
        "--shared", action="store_true", help="others reach it, as behind a proxy: they see only models that were named"
    )
    shown = "of this machine's models, a shared app shows those that were named, or all in the Hugging Face cache (named)"
    parser.add_argument("--models", choices=["named", "cache"], default="named", help=shown)
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder with a Hugging Face model, which the app opens with and has on every page; may be given several times",
    )
    parser.add_argument("--no-training", action="store_true", help="nobody can start a training from the page")
    parser.add_argument(
        "--max-trained-bytes",
        type=_shared.whole(1, 10**15),
        metavar="N",
        help="what trainings from the page may take on the disk, together with all that was trained before (2000000000)",
    )
    parser.add_argument(
        "streamlit",
        nargs="*",
        metavar="ARGUMENT",
        help="after --: passed on to Streamlit, as in: app -- --server.headless true",
    )


def run(arguments: argparse.Namespace) -> int:
    """The app's exit code; it runs until it is stopped."""
    if find_spec("streamlit") is None:
        raise ModuleNotFoundError(name="streamlit")
    if arguments.no_training:
        os.environ[serving.NO_TRAINING_VARIABLE] = "1"
    if arguments.max_trained_bytes is not None:
        os.environ[serving.variable("trained_bytes")] = str(arguments.max_trained_bytes)
    serving.limits()  # a wrong one is said before anything is started
    serving.allow_hosts(arguments.allow_host)
    if any(argument.startswith("--server.address") for argument in arguments.streamlit):
        raise OptionError("--server.address is not passed on to Streamlit. Give --address instead, before the --.")
    if arguments.shared:
        os.environ[serving.SHARED_VARIABLE] = "1"
    serving.share_if_reachable(arguments.address)
    if arguments.models == "cache":
        os.environ[serving.SHARED_MODELS_VARIABLE] = "cache"
    _check_free(arguments.address, arguments.port)
    _seen_from_here(places.FOLDERS_VARIABLE)
    _seen_from_here(places.MODELS_VARIABLE)
    if (surveys := places.surveys()) is not None:
        os.environ[places.SURVEYS_VARIABLE] = str(surveys.absolute())
    if arguments.model:
        _add_models([str(Path(folder).absolute()) for folder in arguments.model])
    options = [f"--server.port={arguments.port}", f"--server.address={arguments.address}", *arguments.streamlit]
    return _become(["run", "app.py", *options])


def _check_free(address: str, port: int) -> None:
    """Streamlit's own word on this is long, and its exit code looks like a verdict."""
    try:
        family, _, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.create_server(where[:2], family=family):
            pass
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "the address is not possible"
        raise OptionError(f"The app cannot listen on {address}, port {port}: {reason}. Choose another with --port.") from error


def _seen_from_here(variable: str) -> None:
    """Folders that a variable lists are those of where the command was typed: the app runs elsewhere."""
    given = os.environ.get(variable, "").split(os.pathsep)
    if any(given):
        os.environ[variable] = os.pathsep.join(str(Path(folder).absolute()) for folder in given if folder)


def _add_models(folders: list[str]) -> None:
    """Puts them before the folders that the app knows; it opens with the first model in them.

    Raises:
        OptionError: a folder has none.
        ModelError: none of a folder can be used; the message says why.
    """
    known = os.environ.get(places.MODELS_VARIABLE)
    os.environ[places.MODELS_VARIABLE] = os.pathsep.join([*folders, *([known] if known else [])])
    # Here, since it imports torch.
    from transformer_viz.readers import entries

    found = entries()
    firsts = [_first(folder, [entry for entry in found if entry.folder.is_relative_to(folder)]) for folder in folders]
    os.environ[serving.OPENS_VARIABLE] = firsts[0]


def _first(folder: str, found: Sequence[Any]) -> str:
    """The name of the first model, of those in a folder, that can be used. `found` are `readers.Entry`."""
    if not found:
        raise OptionError(
            f"There is no model in {folder}, given as --model: a folder with config.json, or one of such folders. "
            "Models in the Hugging Face cache are in the app without it."
        )
    usable = [entry.name for entry in found if entry.error is None]
    if not usable:
        raise ModelError(found[0].error)
    return usable[0]


def _become(arguments: list[str]) -> int:
    """Runs Streamlit in this process, where `app.py` lies and it finds its settings. So a signal stops the app and leaves
    nothing behind, and one that comes while Streamlit is still being loaded is as quiet as any other (`__main__`)."""
    os.chdir(places.ROOT)
    sys.argv = ["streamlit", *arguments]
    runpy.run_module("streamlit", run_name="__main__")
    return 0
