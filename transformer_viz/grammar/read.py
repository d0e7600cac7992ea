"""Parses a sentence: finds every derivation, by trying the templates from the left with a memory of earlier results."""

from collections.abc import Iterator, Sequence

from transformer_viz.grammar.grammar import Features, Grammar, Lexeme, Literal, Word
from transformer_viz.grammar.grammar import Sequence as Items
from transformer_viz.grammar.tree import Tree, agrees, narrowed, wanted

Found = list[tuple[int, Features, "Tree | Lexeme"]]
"""(where it ends, what it shows, the word or phrase)."""


def read(grammar: Grammar, words: Sequence[str]) -> list[Tree]:
    """Finds all derivations of a sentence; none where it is no sentence of the grammar."""
    reader = _Reader(grammar, words)
    starts = dict.fromkeys(item.symbol for item in grammar.kinds.values())
    trees = [tree for symbol in starts for end, _, tree in reader.phrases(symbol, "", 0) if end == len(words)]
    return [tree for tree in trees if isinstance(tree, Tree)]


class _Reader:
    """The parts that were found in a sentence, by symbol, part and place."""

    def __init__(self, grammar: Grammar, words: Sequence[str]) -> None:
        self.grammar, self.words = grammar, tuple(words)
        self.memory: dict[tuple[str, str, int], Found] = {}

    def phrases(self, symbol: str, part: str, start: int) -> Found:
        """Finds all that this symbol (or the first part of it that is met) can be, from a place on."""
        key = (symbol, part, start)
        if key not in self.memory:
            ends: Found = []
            if symbol in self.grammar.lexemes:
                index = self.grammar.by_word[symbol]
                word = self.words[start] if start < len(self.words) else None
                for lexeme, form in (*index.get("", ()), *(index.get(word, ()) if word else ())):
                    if self.has(form.words, start):
                        ends.append((start + len(form.words), {**lexeme.features, **form.features}, lexeme))
            else:
                for template in self.grammar.templates[symbol]:
                    items = template.sides[0].get(part)
                    if items is not None:
                        for end, tree in self.go_on(items, 0, start, Tree(template, {})):
                            ends.append((end, tree.features(), tree))
            self.memory[key] = ends
        return self.memory[key]

    def has(self, words: Sequence[Word], start: int) -> bool:
        """Tells whether these words stand at a place of the sentence."""
        return all(start + i < len(self.words) and self.words[start + i] == word.text for i, word in enumerate(words))

    def go_on(self, items: Items, place: int, at: int, tree: Tree) -> Iterator[tuple[int, Tree]]:
        """Yields all ways to read the items of a template from one of them on."""
        if place == len(items):
            yield at, tree
            return
        item = items[place]
        if isinstance(item, Literal):
            if at < len(self.words) and self.words[at] == item.word:
                yield from self.go_on(items, place + 1, at + 1, tree)
            return
        child = tree.children.get(item.name)
        if child is None:
            readings = self.phrases(item.symbol, item.part, at)
        elif isinstance(child, Lexeme):
            required = wanted(tree.bound, item)
            readings = [
                (at + len(form.words), {**child.features, **form.features}, child)
                for form in child.forms[0]
                if agrees({**child.features, **form.features}, required) and self.has(form.words, at)
            ]
        else:
            rest = child.template.sides[0][item.part]
            readings = [(end, grown.features(), grown) for end, grown in self.go_on(rest, 0, at, child)]
        first = item if child is None else next(one for one in tree.template.items if one.name == item.name)
        for end, features, grown in readings:
            bound = narrowed(tree.bound, item, features)
            if bound is not None and first is not item and isinstance(grown, Tree):
                bound = narrowed(bound, first, features)
            if bound is not None:
                yield from self.go_on(items, place + 1, end, Tree(tree.template, bound, {**tree.children, item.name: grown}))
