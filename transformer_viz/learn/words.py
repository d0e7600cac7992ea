"""The words of questions, by language: `questions.toml` in the folder of each language's lessons."""

import tomllib
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from transformer_viz import language as catalogues
from transformer_viz.errors import LessonError, join_names
from transformer_viz.learn.lesson import LESSONS
from transformer_viz.untrusted_files import is_file, list_folder

FILE = "questions.toml"


def languages() -> list[str]:
    """The languages that questions are asked in, `en` first."""
    names = [folder.name for folder in list_folder(LESSONS) if is_file(folder / FILE)]
    return sorted(names, key=lambda name: (name != "en", name))


def speaking(language: str) -> AbstractContextManager[None]:
    """Sets the language of what is said within: that of a lesson where there is a catalogue of it, else the one of now."""
    return catalogues.speaking(language if language in catalogues.languages() else None)


class Words:
    """The words of one language."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._tables = tables

    def __call__(self, name: str, **fields: object) -> str:
        """The words of a name such as `looks-most.why`, with these fields filled in."""
        return self.template(name).format(**fields)

    def template(self, name: str) -> str:
        """The same with its fields in braces, for who fills them in later."""
        words: Any = self._tables
        for part in name.split("."):
            words = words[part]
        return words

    def list(self, parts: list[str]) -> str:
        """Several, one after the other, as the language writes it."""
        return self("common.comma").join(parts)


@cache
def words(language: str) -> Words:
    """The words of a language.

    Raises:
        LessonError: questions are not asked in it.
    """
    if language not in languages():
        raise LessonError(f"there are no questions in {language[:40]!r}; choose one of {join_names(languages())}")
    return Words(tomllib.loads((LESSONS / language / FILE).read_text(encoding="utf-8")))
