"""A model that a function of somebody's own file makes, named as `my_model.py:make`.

The file is a program of the person who names it, on the command line or in Python; nothing else leads here. Nothing of it runs
before the model is loaded.
"""

import importlib.util
import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_viz import untrusted_files
from transformer_viz.app_folders import MODULES_VARIABLE
from transformer_viz.errors import ModelError, TransformerVizError, short_repr
from transformer_viz.readers.description import Description

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

FAMILY = "your own module"
_NAMED = re.compile(r"(.+\.py):([A-Za-z_]\w*)", re.DOTALL)


@dataclass(frozen=True)
class ModuleFile:
    """A file and the function of it that makes a model."""

    path: Path
    function: str

    @classmethod
    def of(cls, text: str) -> "ModuleFile":
        """Reads a file and a function from their text.

        Raises:
            ModelError: it is no file and function, or the file is not there.
        """
        match = _NAMED.fullmatch(text)
        if match is None:
            raise ModelError(
                f"{short_repr(text)} is no module: give a Python file and a function in it, as in my_model.py:make."
            )
        path = Path(match[1])
        if not untrusted_files.is_file(path):
            raise ModelError(f"There is no file {path.name!r}, given as {short_repr(text)}.")
        return cls(path.absolute(), match[2])

    @property
    def name(self) -> str:
        """The name of the model: that of the file."""
        return self.path.stem

    @property
    def description(self) -> Description:
        """Describes the model before it is loaded."""
        return Description(FAMILY, 0, 0)


def is_one(text: str) -> bool:
    """Tells whether a text names a file and a function in it."""
    return _NAMED.fullmatch(text) is not None


def named() -> dict[str, ModuleFile]:
    """By name, those that the command line of the app named."""
    given = filter(None, os.environ.get(MODULES_VARIABLE, "").split("\n"))
    return {file.name: file for file in map(ModuleFile.of, given)}


def load(file: ModuleFile) -> "LoadedModel":
    """The model that the function returns. The file's folder is searched for what it imports.

    Raises:
        ModelError: the file or the function fails; the message has its line. Or it returns something else than a model.
    """
    from transformer_viz.loaded_model import LoadedModel
    from transformer_viz.model import devices
    from transformer_viz.readers.modules.passes import error_words
    from transformer_viz.readers.modules.wrapping import ModuleModel

    where = f"{file.path.name}:{file.function}"
    try:
        folder = str(file.path.parent)
        if folder not in sys.path:
            sys.path.append(folder)
        spec = importlib.util.spec_from_file_location(file.path.stem, file.path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        make = getattr(module, file.function, None)
        if not callable(make):
            raise ModelError(f"{file.path.name} has no function {file.function}. Name the one that returns tv.wrap(…).")
        model = make()
    except TransformerVizError as error:
        raise ModelError(f"{where}: {error}") from error
    except (Exception, SystemExit) as error:
        if devices.is_out_of_memory(error):
            raise
        raise ModelError(f"{where} failed: {error_words(error)}") from error
    if not isinstance(model, LoadedModel):
        raise ModelError(
            f"{where} returns {type(model).__name__}; it should return what tv.wrap(…) or tv.load_model(…) returns."
        )
    return replace(model, name=file.name) if isinstance(model, ModuleModel) else model
