"""The limits of the numbers in memory at once, wherever texts are run. These are the only limits of memory of a run."""

KEPT = 2**26
"""Numbers of one sort that are kept of a batch until it is done, such as its recorded weights: 256 MiB in float32."""
WORKING = 2**22
"""Numbers of one sort that one operation makes, such as the logits of a pass: 16 MiB in float32."""
CACHED = 2**19
"""Numbers that a processor's cache holds: 4 MiB in float64."""
_OF_TOKEN = 2**8
"""Numbers that a token has in a layer, roughly."""


def n_at_once(most: int, *sizes: int) -> int:
    """Counts how many things fit into `most`, each of which has arrays of these sizes; at least one is taken at once."""
    return max(1, min(most // max(1, size) for size in sizes))


def n_texts_of_pass(n_source: int, n_target: int, n_heads: int, vocabulary: int) -> int:
    """Counts the texts that one pass reads together, each of so many tokens: their logits, weights and states fit."""
    n_weights = n_heads * max(n_source, n_target) ** 2
    return n_at_once(WORKING, n_target * vocabulary, n_weights, (n_source + n_target) * _OF_TOKEN)
