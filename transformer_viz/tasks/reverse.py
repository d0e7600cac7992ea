"""Word reversal, letter by letter (B. Etienne 2024).

Worked example: `hello` is framed as `<start> h e l l o <end>`. The answer is `olleh`, so
step 0 must write `o`, which stands at key index 5; step 4 must write `h` at key index 1;
step 5 writes `<end>` and has no true key. The true keys 5 4 3 2 1 are the anti-diagonal.
"""

from collections.abc import Sequence

from transformer_viz.language import later
from transformer_viz.tasks.letters import PRINTABLE_ASCII, Letters
from transformer_viz.tasks.task import Example


class Reverse(Letters):
    """Writes the source backwards. By default nothing is held out: strings are drawn afresh for every batch."""

    name = "reverse"
    about = later("writes text backwards")
    all_examples = (
        Example("reversethis", later("the anti-diagonal, letter by letter")),
        Example("Mississippi 2026!", later("repeated letters: only their places tell them apart")),
        Example("aaaaaaaa", later("eight equal letters: the model can only count")),
        Example("never odd or even", later("nearly a palindrome")),
        Example("<b>$x^2$</b> & *you*", later("markup is just text here")),
        Example("abcdefghijklmnopqrstuvwxyz012345", later("32 symbols, the longest possible")),
    )

    def __init__(
        self,
        alphabet: str = PRINTABLE_ASCII,
        max_length: int = 32,
        trained_lengths: Sequence[int] = (1, 32),
        held_out_share: float = 0.0,
    ) -> None:
        super().__init__(alphabet, max_length, trained_lengths, held_out_share)

    def answer(self, symbols: Sequence[str]) -> list[str]:
        return list(reversed(symbols))

    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        # `<start>` stands at key index 0, so the last symbol is key number len(symbols).
        n = len(symbols)
        return [n - t if t < n else None for t in range(n_steps)]


TASK = Reverse
