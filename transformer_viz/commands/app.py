"""The command `app`."""

import os
import runpy
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from transformer_viz import app_folders, server_settings
from transformer_viz.commands._options import Option
from transformer_viz.errors import ModelError, OptionError
from transformer_viz.schema import Choice, Range


def run(
    streamlit: Annotated[
        list[str] | None, "options for Streamlit, after --, as in: app -- --server.headless true", Option(is_argument=True)
    ] = None,
    port: Annotated[int, "where the app listens", Range(1, 65535)] = 8501,
    address: Annotated[str, "localhost: only this machine can open the app; 0.0.0.0: everyone in the network"] = "localhost",
    allow_host: Annotated[list[str] | None, "another name under which the app may be opened; may be repeated"] = None,
    shared: Annotated[bool, "others use the app, for example behind a proxy: show them only the models that you name"] = False,
    models: Annotated[
        str,
        "what a shared app shows: the models that you name, or all of the Hugging Face cache",
        Choice(("named", "cache")),
    ] = "named",
    model: Annotated[list[str] | None, "a folder with a Hugging Face model, with which the app opens; may be repeated"] = None,
    module: Annotated[
        list[str] | None,
        "a model that a function of your own file makes, as in my_model.py:make, with which the app opens; may be repeated",
    ] = None,
    lessons: Annotated[str | None, "a folder with lessons of your own, for the page Learn"] = None,
    no_training: Annotated[bool, "do not let anybody start a training from the app"] = False,
    max_trained_bytes: Annotated[
        int | None,
        "disk space for trainings from the app, earlier ones included (2000000000)",
        Range(1, 10**15),
    ] = None,
) -> int:
    """Start the app, to be opened in a browser. Ctrl-C stops it."""
    given = streamlit or []
    if find_spec("streamlit") is None:
        raise ModuleNotFoundError(name="streamlit")
    if lessons is not None and not Path(lessons).is_dir():
        raise OptionError(f"There is no folder {lessons}, given as --lessons: one with lessons such as 01-crossing.md.")
    settings = {
        server_settings.NO_TRAINING_VARIABLE: "1" if no_training else None,
        server_settings.variable("trained_bytes"): None if max_trained_bytes is None else str(max_trained_bytes),
        app_folders.LESSONS_VARIABLE: lessons,
        app_folders.SHARED_VARIABLE: "1" if shared else None,
        app_folders.SHARED_MODELS_VARIABLE: "cache" if models == "cache" else None,
    }
    os.environ |= {name: value for name, value in settings.items() if value is not None}
    server_settings.limits()  # a wrong one is said before anything is started
    server_settings.allow_hosts(allow_host or [])
    if any(argument.startswith("--server.address") for argument in given):
        raise OptionError("--server.address is not passed on to Streamlit. Give --address instead, before the --.")
    server_settings.share_if_reachable(address)
    try:
        # Streamlit's own message about this is long, and its exit code looks like a verdict.
        family, _, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.create_server(where[:2], family=family):
            pass
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "the address is not possible"
        raise OptionError(f"The app cannot listen on {address}, port {port}: {reason}. Choose another with --port.") from error
    for variable in (app_folders.FOLDERS_VARIABLE, app_folders.MODELS_VARIABLE):
        # Their folders are those of where the command was typed: a training that the app starts runs elsewhere.
        if folders := [folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder]:
            os.environ[variable] = os.pathsep.join(str(Path(folder).absolute()) for folder in folders)
    if (own_lessons := app_folders.lessons()) is not None:
        os.environ[app_folders.LESSONS_VARIABLE] = str(own_lessons.absolute())
    if (surveys := app_folders.surveys()) is not None:
        os.environ[app_folders.SURVEYS_VARIABLE] = str(surveys.absolute())
    os.environ.pop(app_folders.MODULES_VARIABLE, None)
    if module:
        from transformer_viz.readers.modules.files import ModuleFile

        files = [ModuleFile.of(named) for named in module]
        os.environ[app_folders.MODULES_VARIABLE] = "\n".join(f"{file.path}:{file.function}" for file in files)
        os.environ[server_settings.OPENS_VARIABLE] = files[0].name
    if model:
        # Before the folders that the app knows; it opens with the first model in them.
        folders = [str(Path(folder).absolute()) for folder in model]
        known = os.environ.get(app_folders.MODELS_VARIABLE)
        os.environ[app_folders.MODELS_VARIABLE] = os.pathsep.join([*folders, *([known] if known else [])])
        # Here, since it imports torch.
        from transformer_viz.readers import entries

        found, firsts = entries(), []
        for folder in folders:
            there = [entry for entry in found if entry.folder.is_relative_to(folder)]
            if not there:
                raise OptionError(
                    f"There is no model in {folder}, given as --model: a folder with config.json, or one of such folders. "
                    "Models in the Hugging Face cache are in the app without it."
                )
            usable = [entry.name for entry in there if entry.error is None]
            if not usable:
                raise ModelError(there[0].error)
            firsts.append(usable[0])
        os.environ[server_settings.OPENS_VARIABLE] = firsts[0]
    # In this process, so that a signal stops the app and leaves nothing behind, and one that comes while Streamlit is still
    # being loaded is as quiet as any other (`__main__`). And in this folder, whose files a module of one's own may read;
    # Streamlit finds its settings beside `app.py`.
    script = str(app_folders.ROOT / "app.py")
    sys.argv = ["streamlit", "run", script, f"--server.port={port}", f"--server.address={address}", *given]
    runpy.run_module("streamlit", run_name="__main__")
    return 0
