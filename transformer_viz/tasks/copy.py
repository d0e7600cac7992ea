"""Copying, letter by letter.

Worked example: `hello` is framed as `<start> h e l l o <end>` and the answer is `hello`. Step 0 must write `h`,
which stands at key index 1; the true keys 1 2 3 4 5 are the diagonal, one to the right of it for `<start>`.
"""

from collections.abc import Sequence

from transformer_viz.language import later
from transformer_viz.tasks.letters import Letters
from transformer_viz.tasks.task import Example


class Copy(Letters):
    """Writes the source as it is."""

    name = "copy"
    about = later("writes a text again, letter by letter")
    all_examples = (
        Example("transformer", later("the diagonal, letter by letter")),
        Example("aaaaaaaa", later("eight equal letters: the model can only count")),
        Example("banana", later("letters that come again")),
    )

    def answer(self, symbols: Sequence[str]) -> list[str]:
        return list(symbols)

    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        return [t + 1 if t < len(symbols) else None for t in range(n_steps)]


TASK = Copy
