"""What can go wrong through a person's input, one class a mistake.

Every message says what was given, what is allowed and what to do next. Our own
mistakes are asserts and ordinary exceptions; they never derive from these.
"""

from collections.abc import Iterable


class TransformerVizError(Exception):
    """Base of every error that a user's input, file or machine can cause."""


class ConfigError(TransformerVizError):
    """A model, task or recipe setting that cannot work."""


class InputError(TransformerVizError):
    """A source text that the task cannot read."""


class OptionError(TransformerVizError):
    """A keyword or command-line option with an impossible value."""


class TraceTooLarge(OptionError):
    """A run whose Trace would be larger than allowed.

    Attributes:
        needed: bytes, at the most.
        allowed: bytes.
        offers: keywords of `decode` with which it is allowed, and the bytes then; the one that keeps most comes first.
    """

    def __init__(self, message: str, needed: int, allowed: int, offers: "tuple[tuple[dict[str, object], int], ...]") -> None:
        super().__init__(message)
        self.needed, self.allowed, self.offers = needed, allowed, offers


class CheckpointError(TransformerVizError):
    """A checkpoint that is missing, damaged or not ours."""


class DeviceError(TransformerVizError):
    """A device that is not there, or that ran out of memory."""


class TraceError(TransformerVizError):
    """A trace, or a trace file, whose parts do not fit together."""


class ExportError(TransformerVizError):
    """A page, picture or table that cannot be made or written here."""


def listed(names: Iterable[object]) -> str:
    """`["a", "b"]` as `a, b`, for the "allowed" part of a message."""
    found = [str(name) for name in names]
    return ", ".join(found) if found else "none"
