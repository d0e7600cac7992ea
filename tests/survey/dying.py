"""What a worker does in tests of its end: it is imported by workers, too."""

import os
import signal
from pathlib import Path

from transformer_viz.errors import InputError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveying.options import SurveyOptions
from transformer_viz.surveying.work import Unit, leave

ONCE, ALWAYS, REFUSED = "is killed once", "is killed always", "is refused"
"""What the first line of a block asks for; the second names a file."""


def task(model: LoadedModel, unit: Unit, options: SurveyOptions) -> bytes:
    asked = unit.block.lines[0].text
    if asked == REFUSED:
        raise InputError("this one is refused")
    if asked == ALWAYS or (asked == ONCE and not _was_here(Path(unit.block.lines[1].text))):
        os.kill(os.getpid(), signal.SIGKILL)
    return leave(model, unit, options)


def _was_here(mark: Path) -> bool:
    was = mark.exists()
    mark.touch()
    return was
