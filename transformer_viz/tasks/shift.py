"""Rotation: the first letters go to the end.

Worked example, shifted by 2: `hello` is framed as `<start> h e l l o <end>`, the answer is `llohe`. Step 0 must write
`l` at key index 3, step 3 must write `h` at key index 1: the true keys 3 4 5 1 2 are a diagonal that breaks once.
"""

from collections.abc import Sequence
from typing import Any

from transformer_viz.errors import ConfigError
from transformer_viz.language import later
from transformer_viz.schema import whole_number
from transformer_viz.tasks.letters import LOWER_CASE, Letters
from transformer_viz.tasks.task import Example


class Shift(Letters):
    """Moves the first `by` letters to the end; the other arguments are those of `Letters`."""

    name = "shift"
    about = later("moves the first letters of a text to its end")
    all_examples = (
        Example("transformer", later("a diagonal that breaks where the string wraps around")),
        Example("ab", later("shifted by its own length: nothing changes")),
        Example("banana", later("letters that come again")),
    )

    def __init__(
        self,
        alphabet: str = LOWER_CASE,
        max_length: int = 32,
        trained_lengths: Sequence[int] = (1, 20),
        held_out_share: float = 0.1,
        by: int = 2,
    ) -> None:
        super().__init__(alphabet, max_length, trained_lengths, held_out_share)
        self.by = whole_number("by", by, 1, max_length, ConfigError)

    def options(self) -> dict[str, Any]:
        return {**super().options(), "by": self.by}

    def answer(self, symbols: Sequence[str]) -> list[str]:
        start = self.by % len(symbols)
        return [*symbols[start:], *symbols[:start]]

    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        n = len(symbols)
        return [(t + self.by) % n + 1 if t < n else None for t in range(n_steps)]


TASK = Shift
