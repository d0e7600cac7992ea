"""A survey as a file, `summary.json`: written whole or not at all, and read as anybody's."""

from os import PathLike
from pathlib import Path

from transformer_viz import reading
from transformer_viz.analysis.survey.result import Survey
from transformer_viz.errors import FileError, SurveyError

NAME = "summary.json"
LARGEST = 2**26
"""Bytes; as Python objects up to 25 times as much."""


def load_survey(path: str | PathLike[str]) -> Survey:
    """Reads a survey from its `summary.json`, or from the folder in which it lies.

    Raises:
        SurveyError: there is none, or it is damaged, too large, or of a later version.
    """
    file = Path(path) / NAME if reading.is_folder(Path(path)) else Path(path)
    try:
        return Survey.from_json(reading.bytes_of(file, LARGEST))
    except FileNotFoundError:
        raise SurveyError(f"There is no survey {str(file)[-200:]}.") from None
    except MemoryError:
        raise SurveyError(f"{file.name} needs more memory than there is.") from None
    except (FileError, SurveyError) as error:
        raise SurveyError(f"{file.name} is not a survey that this program can read: {error}.") from error
