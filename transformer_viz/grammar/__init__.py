"""A synchronous grammar: draws sentences of two languages with their alignment, and reads them back; words are in files.

See `docs/grammar.md` for how a lexicon and templates are written.
"""

from transformer_viz.grammar.draw import draw
from transformer_viz.grammar.grammar import Grammar, load_grammar
from transformer_viz.grammar.pair import SentencePair, tree_pair
from transformer_viz.grammar.read import read

__all__ = ["Grammar", "SentencePair", "draw", "load_grammar", "read", "tree_pair"]
