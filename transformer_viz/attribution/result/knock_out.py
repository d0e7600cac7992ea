"""The result of ablating heads: what runs lose without each, as means over texts with intervals."""

from dataclasses import dataclass

import numpy as np

from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.intervals import Mean, wilson
from transformer_viz.errors import OptionError, join_names
from transformer_viz.numbers_in_words import count_words
from transformer_viz.text_table import text_table


@dataclass(frozen=True)
class HeadEffect:
    """One ablated head; means over texts with their intervals.

    Attributes:
        place: the head.
        log_p: how much each token of the answers loses, in nats.
        exact: the share of texts that are still written.
        stays: of the answers that are written with all heads, the share that is written without this one, too; NaN where there
            are none.
    """

    place: HeadAddress
    log_p: Mean
    exact: Mean
    stays: Mean


@dataclass(frozen=True)
class KnockOut:
    """Every head ablated alone.

    Attributes:
        how: what stands in the place of a head.
        n_texts: how many.
        n_known: texts of which the true answer is known; of the others it is what the run wrote.
        exact_before: with all heads.
        heads: by kind, layer and head.
    """

    how: str
    n_texts: int
    n_known: int
    exact_before: Mean
    heads: tuple[HeadEffect, ...]

    def __repr__(self) -> str:
        """One line."""
        return f"<KnockOut {self.how}: {count_words(len(self.heads), 'head')}, {count_words(self.n_texts, 'text')}>"

    def at(self, head: str | HeadAddress) -> HeadEffect:
        """One head, such as `cross.2.3`.

        Raises:
            OptionError: it was not ablated.
        """
        place = HeadAddress.read(head)
        for effect in self.heads:
            if effect.place == place:
                return effect
        raise OptionError(f"head {place} was not ablated; those that were: {join_names(effect.place for effect in self.heads)}")

    def __str__(self) -> str:
        """The experiment in a line, and a table of all heads."""
        answers = "the answer" if self.n_known else "what was written"
        answers = "the right answer" if self.n_known == self.n_texts else answers
        rows = [("all heads", str(self.exact_before), "")]
        rows += [(str(effect.place), str(effect.exact), str(effect.log_p)) for effect in self.heads]
        title = f"{count_words(self.n_texts, 'text')}, {answers}; the output of a removed head: {self.how}"
        return f"{title}\n{text_table(('', 'still written', 'change of log p a token'), rows)}"


def share_of(is_so: np.ndarray) -> Mean:
    """A share of independent texts with Wilson's interval, since resampling would give no width where all are alike."""
    n, hits = len(is_so), int(is_so.sum())
    return Mean(hits / n if n else np.nan, wilson(hits, n) if n > 1 else None)
