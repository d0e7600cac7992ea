"""The folders of the app, the shipped checkpoints, and what people train.

In a checkout, and in an editable install of one, they lie beside the package. An installed package has the app and the shipped
checkpoints in its folder `shipped/`, where nothing is written: trained checkpoints go to the user's data folder.
"""

import os
from pathlib import Path

from platformdirs import user_data_path

_PACKAGE = Path(__file__).resolve().parent
IS_INSTALLED = (_PACKAGE / "shipped").is_dir()
ROOT = _PACKAGE / "shipped" if IS_INSTALLED else _PACKAGE.parent
"""The folder of `app.py`, of Streamlit's settings and of `checkpoints/`."""
FOLDERS_VARIABLE = "TRANSFORMER_VIZ_CHECKPOINTS"
"""The environment variable that names a folder with more checkpoints."""
MODELS_VARIABLE = "TRANSFORMER_VIZ_MODELS"
"""The one that names folders with Hugging Face models, or models, one after the other as in PATH."""
MODULES_VARIABLE = "TRANSFORMER_VIZ_MODULES"
"""The one that names functions of people's own files that make models, `/home/me/my_model.py:make`, one a line. Only the
command `app` sets it."""
SURVEYS_VARIABLE = "TRANSFORMER_VIZ_SURVEYS"
"""The one that names a folder with surveys: `surveys` where the app is started, unless it is set or others see it."""

LESSONS_VARIABLE = "TRANSFORMER_VIZ_LESSONS"
"""The one that names a folder with lessons of a teacher's own."""
SHARED_VARIABLE = "TRANSFORMER_VIZ_SHARED"
"""The one that is set where other people can reach the app."""
SHARED_MODELS_VARIABLE = "TRANSFORMER_VIZ_SHARED_MODELS"
"""The one that says what they see: `cache` = the models of the Hugging Face cache too."""


def is_on(variable: str) -> bool:
    """Tells whether an environment variable is set to something else than a plain no."""
    return os.environ.get(variable, "").strip().lower() not in ("", "0", "false", "no", "off")


def is_shared() -> bool:
    """Tells whether other people can reach the app: they see only models and surveys that were named, and are not its owner."""
    return is_on(SHARED_VARIABLE)


def shows_all_models() -> bool:
    """Tells whether the app shows what was not named: models of the Hugging Face cache and of installed packages."""
    return not is_shared() or os.environ.get(SHARED_MODELS_VARIABLE) == "cache"


def surveys() -> Path | None:
    """The folder of people's own surveys; None where others can reach the app and nobody has named one."""
    named = os.environ.get(SURVEYS_VARIABLE) or (None if is_shared() else "surveys")
    return None if named is None else Path(named)


def lessons() -> Path | None:
    """The folder of a teacher's own lessons; None where nobody has named one."""
    named = os.environ.get(LESSONS_VARIABLE)
    return Path(named) if named else None


def trained() -> Path:
    """The folder of what people train."""
    return (user_data_path("transformer-viz", appauthor=False) if IS_INSTALLED else ROOT) / "trained"


def trained_as_typed() -> str:
    """The same folder as people type it: seen from a checkout's root, or from their own folder `~`."""
    if not IS_INSTALLED:
        return "trained"
    folder, home = trained(), Path.home()
    return f"~/{folder.relative_to(home).as_posix()}" if folder.is_relative_to(home) else str(folder)
