"""The surveys that a page can show: beside a model's files, in the folder `surveys/`, and those that a visitor has opened.

A visitor names one by what is listed here, never by a path, and nothing of a file is believed: `Survey.from_json` reads it
within limits. What was opened belongs to its session alone.
"""

import hashlib
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import streamlit as st

from transformer_viz import app_folders, untrusted_files
from transformer_viz.errors import SurveyError
from transformer_viz.language import say
from transformer_viz.surveys.result import NAME, Survey, load_survey
from transformer_viz.text_display import shorten
from transformer_viz.views.cache import model_list
from transformer_viz.views.components import uploader
from transformer_viz.views.components.uploader import MB

FOLDER = "surveys"
"""The name of the folder of people's own surveys: each folder in it with a `summary.json` is listed."""
_OF_A_MODEL = "survey"
LARGEST, MOST_OF_ALL = 8 * MB, 48 * MB
"""Bytes of a file that a page reads, and of what all visitors have opened; as Python objects up to 25 times as much."""
MOST_OPENED, _MOST_LISTED, _LONGEST_NAME = 4, 200, 60
_SORT = "surveys"

# One file is read at a time, so that reading takes its memory once; also guards what all sessions hold.
_READING = threading.Lock()


@dataclass(frozen=True, eq=False)
class Source:
    """A survey that a page can show.

    Attributes:
        identity: tells it from all others, and from itself with another content.
        read: returns the survey; raises a `SurveyError` where it cannot be read, or is larger than a page shows.
        path: of its `summary.json` on this machine; None for what a visitor has opened.
        size: bytes of the file that a visitor has opened.
    """

    identity: tuple[object, ...]
    read: Callable[[], Survey]
    path: Path | None = None
    size: int = 0


_HELD: weakref.WeakSet[Source] = weakref.WeakSet()


@st.cache_resource(max_entries=8, show_spinner=False)
def _read(path: str, changed: float, size: int) -> Survey:
    if size > LARGEST:
        raise SurveyError(
            f"{NAME} has {size / MB:.0f} MB; the page reads {LARGEST // MB} MB at most. tv.load_survey reads larger ones."
        )
    return load_survey(path)


def surveys() -> dict[str, Source]:
    """The surveys by the names by which they are chosen: those of models, of the folder, and what was opened."""
    of_models = {entry.name: entry.folder for entry in model_list.entries() if entry.error is None}
    of_models |= {name: entry.folder for name, entry in model_list.models().items() if name not in of_models}
    files = {name: folder / _OF_A_MODEL / NAME for name, folder in of_models.items()}
    parent = app_folders.surveys()
    for folder in [] if parent is None else untrusted_files.list_folder(parent)[:_MOST_LISTED]:
        if folder.name.isprintable() and len(folder.name) <= _LONGEST_NAME:
            files[f"{FOLDER}/{folder.name}"] = folder / NAME
    found = {}
    for name, path in files.items():
        if untrusted_files.is_file(path):
            file = (str(path), untrusted_files.modification_time(path), untrusted_files.file_size(path))
            found[name] = Source(file, partial(_read, *file), path)
    return found | _opened()


def box() -> None:
    """Draws a box to drop a survey into; what was dropped is chosen."""
    uploader.box(say("Drop a survey's {name} here", name=NAME), "survey-box", _SORT, _open, most_bytes=LARGEST)
    st.caption(say("At most {largest} MB. Nothing in a file can run.", largest=LARGEST // MB))


def tell() -> None:
    """Draws why what was dropped last is not shown."""
    uploader.tell(_SORT)
    uploader.forget(_SORT)


def _opened() -> dict[str, Source]:
    return st.session_state.setdefault("surveys_opened", {})


def _open(file_name: str, data: bytes) -> None:
    """Holds what a file's bytes are, under its name, and chooses it; the oldest gives way."""
    name = shorten("".join(sign for sign in file_name if sign.isprintable()), _LONGEST_NAME)
    if len(data) > LARGEST:
        raise SurveyError(f"{name} has {len(data):,} bytes; at most {LARGEST:,} are read.")
    held = _opened()
    with _READING:
        if sum(each.size for each in _HELD) + len(data) > MOST_OF_ALL:
            raise SurveyError("This server holds as many opened surveys as it can. Try again later, or run the app yourself.")
        try:
            survey = Survey.from_json(data)
        except SurveyError as error:
            raise SurveyError(f"{name} is not a survey that this program can read: {error}.") from error
        opened = Source(("opened", hashlib.sha256(data).hexdigest()), lambda: survey, size=len(data))
        _HELD.add(opened)
    name = say("{name} (opened)", name=name)
    held.pop(name, None)
    while len(held) >= MOST_OPENED:
        held.pop(next(iter(held)))
    held[name] = opened
    st.session_state.survey = name
