"""The callbacks that are told of a decoding, or of longer work, and may end it."""

from collections.abc import Callable
from dataclasses import dataclass

from transformer_viz.decoding.tokenizer import Tokenizer


@dataclass(frozen=True)
class Written:
    """The output so far, given to `on_token` of `decode`.

    Attributes:
        n_steps: how many tokens the longest text has.
        ids: of each text; in a beam search those of the most probable hypothesis that is still being written.
        tokenizer: of the model.
    """

    n_steps: int
    ids: tuple[tuple[int, ...], ...]
    tokenizer: Tokenizer

    @property
    def texts(self) -> tuple[str, ...]:
        """The output so far, as text."""
        return tuple(map(self.tokenizer.text, self.ids))


OnToken = Callable[[Written], bool | None]
"""A callback that gets what has been written so far; decoding ends when it returns False."""


OnProgress = Callable[[float], object]
"""A callback that gets the share of the work that is done, from 0 to 1; an exception in it ends the work."""


def part_of(on_progress: OnProgress | None, n_done: int, n_parts: int) -> OnProgress:
    """A callback for the next of `n_parts` equal parts, which reports the share of the whole; `n_done` parts are done."""

    def say(share: float) -> None:
        if on_progress is not None:
            on_progress((n_done + share) / n_parts)

    return say
