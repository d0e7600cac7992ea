"""The errors that a person's input, file or machine can cause.

Every message says what was given, what is allowed and what to do next. Bugs of this program are asserts and ordinary
exceptions; they never derive from these classes.
"""

import re
import reprlib
from collections.abc import Iterable

_LONGEST_MESSAGE = 1500
_quotes = reprlib.Repr()
_quotes.maxstring = _quotes.maxother = 60


class TransformerVizError(Exception):
    """Base of every error that a user's input, file or machine can cause.

    A message that repeats something very long is cut in its middle: it begins with what is wrong and ends with what to do.
    """

    def __str__(self) -> str:
        words = super().__str__()
        if len(words) <= _LONGEST_MESSAGE:
            return words
        half = _LONGEST_MESSAGE // 2
        return f"{words[:half]} … {words[-half:]}"


class ConfigError(TransformerVizError):
    """A model, task or recipe setting that cannot work."""


class InputError(TransformerVizError):
    """A source text that the task cannot read."""


class OptionError(TransformerVizError):
    """A keyword or command-line option with an impossible value."""


class NotSeenError(OptionError):
    """Raised for what a model's reader does not see, whatever is asked of it."""


class TraceTooLarge(OptionError):
    """A run whose Trace would be larger than allowed.

    Attributes:
        needed: bytes, at the most.
        allowed: bytes.
        offers: keywords of `decode` that make the Trace small enough, each with its bytes; the one that keeps most is first.
    """

    def __init__(self, message: str, needed: int, allowed: int, offers: "tuple[tuple[dict[str, object], int], ...]") -> None:
        super().__init__(message)
        self.needed, self.allowed, self.offers = needed, allowed, offers


class FileError(TransformerVizError):
    """A file that cannot be read: it is not a regular file, too large, or not in its format. The message names no path."""


class CheckpointError(TransformerVizError):
    """A checkpoint that is missing, damaged or not ours."""


class ModelError(TransformerVizError):
    """A model of another library that cannot be loaded, recorded or run here; the message says why."""


class DeviceError(TransformerVizError):
    """A device that is not there, or that ran out of memory."""


class BusyError(TransformerVizError):
    """Too many long runs are waiting already."""


class TraceError(TransformerVizError):
    """A trace, or a trace file, whose parts do not fit together."""


class SurveyError(TransformerVizError):
    """A survey, or a survey's file, whose parts do not fit together."""


class LessonError(TransformerVizError):
    """A lesson, or a lesson's file, that cannot be taught; the message says in which step and why."""


class TraceTooLargeHere(TraceError):
    """A trace, or a trace file, that is too large for the app or a command; `load_trace` may still read it."""


class ExportError(TransformerVizError):
    """A page, picture or table that cannot be made or written here."""


def join_names(names: Iterable[object]) -> str:
    """`["a", "b"]` as `a, b`, for the "allowed" part of a message."""
    words = [str(name) for name in names]
    return ", ".join(words) if words else "none"


def short_repr(value: object) -> str:
    """The `repr` of what was given in one line, cut in its middle where it is long or deep."""
    return re.sub(r"\n *", " ", _quotes.repr(value))  # that of an array has several
