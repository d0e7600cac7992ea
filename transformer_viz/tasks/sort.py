"""Sorting letters into the order of the alphabet.

Worked example: `hello` is framed as `<start> h e l l o <end>`, the answer is `ehllo`. Step 0 must write `e` at key
index 2, step 1 `h` at key index 1; of equal letters the first comes first: the true keys are 2 1 3 4 5.
Where to look depends on what is read, so no fixed pattern of positions can solve it.
"""

from collections.abc import Sequence

from transformer_viz.language import later
from transformer_viz.tasks.letters import Letters
from transformer_viz.tasks.task import Example


class Sort(Letters):
    """Writes the letters in the order in which the alphabet has them."""

    name = "sort"
    about = later("puts letters into the order of the alphabet")
    all_examples = (
        Example("transformer", later("where to look depends on the letters")),
        Example("almost", later("in order already")),
        Example("wronged", later("in reverse order already")),
        Example("banana", later("equal letters, first come first")),
    )

    def answer(self, symbols: Sequence[str]) -> list[str]:
        return [symbols[i] for i in self._order(symbols)]

    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        order = self._order(symbols)
        return [order[t] + 1 if t < len(order) else None for t in range(n_steps)]

    def _order(self, symbols: Sequence[str]) -> list[int]:
        places = self.source_vocabulary.ids
        return sorted(range(len(symbols)), key=lambda i: (places.get(symbols[i], 0), i))


TASK = Sort
