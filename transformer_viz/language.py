"""Says what is on the screen in the language of whoever looks.

The English text is the name of its translations, which lie in `locale/LANGUAGE`; see docs/translating.md. Where no language was
chosen, as on the command line and in Python, all that is said is English. Sentences with pieces of a run in them are said by
`transformer_viz.sentences.run_sentences`.
"""

import gettext
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from transformer_viz.errors import OptionError, join_names, short_repr

ENGLISH = "en"
FOLDER = Path(__file__).parent / "locale"
DOMAIN = "transformer_viz"
_now: ContextVar[str] = ContextVar("language", default=ENGLISH)
P = ParamSpec("P")
R = TypeVar("R")


@cache
def languages() -> tuple[str, ...]:
    """Lists the languages in which the screen speaks, English first."""
    return (ENGLISH, *sorted(file.parts[-3] for file in FOLDER.glob(f"*/LC_MESSAGES/{DOMAIN}.mo")))


def current() -> str:
    """The language of what is being drawn."""
    return _now.get()


def suffix() -> str:
    """For the name of what there is once for each language: nothing in English, else as `-zh`."""
    return "" if current() == ENGLISH else f"-{current()}"


@contextmanager
def speaking(language: str | None) -> Generator[None]:
    """Sets the language of all that is said within; None is the one of now.

    Raises:
        OptionError: there is no catalogue of it.
    """
    language = current() if language is None else language
    if language not in languages():
        raise OptionError(f"language {short_repr(language)} is not known; choose one of {join_names(languages())}")
    before = _now.set(language)
    try:
        yield
    finally:
        _now.reset(before)


def spoken(work: Callable[P, R]) -> Callable[P, R]:
    """Work for another thread, or for later, that speaks the language of now."""
    language = current()

    @wraps(work)
    def said(*args: P.args, **keywords: P.kwargs) -> R:
        with speaking(language):
            return work(*args, **keywords)

    return said


def say(template: str, /, **fields: object) -> str:
    """A text in the language of now, with its places filled in.

    Args:
        template: the English text, such as `"Show {count} heads"`; also where it has no place, a brace in it is doubled.
        fields: what goes into its places.
    """
    return (translation(template, current()) or template).format(**fields)


def known(text: str) -> str:
    """A text that may be one of the program's own, in the language of now; any other as it is, also where it has braces."""
    return translation(text, current()) or text


def english(template: str, /, **fields: object) -> str:
    """The English text, in whatever language: for links and files, whose words are the same for everybody."""
    return template.format(**fields)


def say_count(one: str, many: str, count: int, /, **fields: object) -> str:
    """`say` of a text that is another one for one thing than for several; `{count}` is the number.

    Args:
        one: the English text for one.
        many: the same for several.
        count: how many.
        fields: what goes into the other places.
    """
    return _catalogue(current()).ngettext(one, many, count).format(count=count, **fields)


def later(template: str) -> str:
    """The English text itself: it is only written here, and `say` is asked for it where it is shown."""
    return template


def later_count(one: str, many: str) -> tuple[str, str]:
    """`later` of a text that is another one for several things, for `say_count`."""
    return one, many


def listed(names: Iterable[str]) -> str:
    """Several one after the other, as `a, b and c`."""
    names = list(names)
    if len(names) < 2:
        return "".join(names)
    *some, last = names
    before = some[0]
    for name in some[1:]:
        before = say("{names}, {name}", names=before, name=name)
    return say("{names} and {name}", names=before, name=last)


def sentences(parts: Iterable[str]) -> str:
    """Whole sentences one after the other: Chinese has no blank between them."""
    before, *others = [*parts] or [""]
    for part in others:
        before = say("{sentence} {next}", sentence=before, next=part)
    return before


def one_of(names: Iterable[str]) -> str:
    """Several of which one may be chosen, as `a or b`."""
    before, *others = [*names] or [""]
    for name in others:
        before = say("{names} or {name}", names=before, name=name)
    return before


def enumerated(names: Iterable[str]) -> str:
    """Several one after the other, as `a, b, c`."""
    before, *others = [*names] or [""]
    for name in others:
        before = say("{names}, {name}", names=before, name=name)
    return before


def translation(template: str, language: str) -> str | None:
    """Translates an English text into a language; None where it is the same."""
    # The header of a catalogue is the translation of nothing.
    found = _catalogue(language).gettext(template) if template else template
    return None if found == template else found


@cache
def _catalogue(language: str) -> gettext.NullTranslations:
    if language == ENGLISH:
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, FOLDER, [language])
