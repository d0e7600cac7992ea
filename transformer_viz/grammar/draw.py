"""Draws random sentences: a template for each phrase and a word for each place, so that all features agree."""

from typing import Any

import numpy as np

from transformer_viz.grammar.grammar import Features, Grammar, Lexeme, Template
from transformer_viz.grammar.tree import Tree, agrees, narrowed, opened, wanted

_MOST_CHOICES = 50_000
"""Remembered of a grammar."""


class _DeadEnd(Exception):
    """No word or template agrees with what was chosen before."""


def draw(grammar: Grammar, kind: str, rng: np.random.Generator) -> Tree | None:
    """A sentence of a kind of `grammar.kinds`; None where what was chosen first left no choice later."""
    start = grammar.kinds[kind]
    try:
        return _draw_phrase(grammar, start.symbol, start.constants, _Chance(rng), set())
    except _DeadEnd:
        return None


class _Chance:
    """Whole numbers below n; of one call of numpy, since a sentence takes thirty."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.shares = iter(rng.random(600).tolist())

    def below(self, n: float) -> float:
        share = next(self.shares, None)
        if share is None:
            raise _DeadEnd
        return share * n


def _draw_phrase(grammar: Grammar, symbol: str, asked: Features, chance: _Chance, used: set[Lexeme]) -> Tree:
    possible, total = _templates(grammar, symbol, asked)
    if not possible:
        raise _DeadEnd
    place, i = chance.below(total), 0
    while place >= possible[i][0].weight and i + 1 < len(possible):
        place, i = place - possible[i][0].weight, i + 1
    template, bound = possible[i]
    tree = Tree(template, bound)
    for item in template.items:
        asked = wanted(tree.bound, item)
        if item.symbol in grammar.lexemes:
            words = _words(grammar, item.symbol, asked)
            if not words:
                raise _DeadEnd
            child, forms = words[int(chance.below(len(words)))]
            if child in used and item.symbol in grammar.once:
                raise _DeadEnd
            used.add(child)
            features = forms[int(chance.below(len(forms)))]
        else:
            child = _draw_phrase(grammar, item.symbol, asked, chance, used)
            features = child.features()
        bound = narrowed(tree.bound, item, features)
        if bound is None:
            raise _DeadEnd
        tree.children[item.name], tree.bound = child, bound
    return tree


Choice = tuple[Lexeme, list[Features]]
"""A word, and what each of its forms shows that agrees with what is asked."""


def _words(grammar: Grammar, symbol: str, asked: Features) -> list[Choice]:
    """The words that agree with what is asked, each as often as its weight."""
    key = (symbol, *asked.items())
    found = grammar.choices.get(key)
    if found is None:
        found = []
        for lexeme in grammar.lexemes[symbol]:
            if agrees(lexeme.features, asked) and (forms := [form for form in lexeme.shown if agrees(form, asked)]):
                found += [(lexeme, forms)] * lexeme.weight
        _remember(grammar, key, found)
    return found


def _templates(grammar: Grammar, symbol: str, asked: Features) -> tuple[list[tuple[Template, Features]], float]:
    """The templates that agree with what is asked, with their variables; and the sum of their weights."""
    key = (symbol, *asked.items())
    found = grammar.choices.get(key)
    if found is None:
        possible = [
            (template, bound)
            for template in grammar.templates[symbol]
            if template.weight and (bound := opened(template, asked)) is not None
        ]
        found = possible, sum(template.weight for template, _ in possible)
        _remember(grammar, key, found)
    return found


def _remember(grammar: Grammar, key: tuple[Any, ...], found: Any) -> None:
    if len(grammar.choices) >= _MOST_CHOICES:
        grammar.choices.clear()
    grammar.choices[key] = found
