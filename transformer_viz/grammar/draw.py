"""Draws random sentences: a template for each phrase and a word for each place, so that all features agree."""

from typing import Any

import numpy as np

from transformer_viz.grammar.grammar import Features, Grammar, Lexeme
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
    possible = _choices(grammar, symbol, asked)
    if not possible:
        raise _DeadEnd
    place, i = chance.below(sum(template.weight for template, _ in possible)), 0
    while place >= possible[i][0].weight and i + 1 < len(possible):
        place, i = place - possible[i][0].weight, i + 1
    template, bound = possible[i]
    tree = Tree(template, bound)
    for item in template.items:
        asked = wanted(tree.bound, item)
        if item.symbol in grammar.lexemes:
            words = _choices(grammar, item.symbol, asked)
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


def _choices(grammar: Grammar, symbol: str, asked: Features) -> list[tuple[Any, Any]]:
    """The forms that can stand for a symbol and agree with what is asked of it, remembered in the grammar.

    Of a word class: each word, as often as its weight, with the features of its forms. Of a phrase: each template with its
    variables.
    """
    key = (symbol, *asked.items())
    choices = grammar.choices.get(key)
    if choices is None:
        choices = []
        for lexeme in grammar.lexemes.get(symbol, ()):
            if agrees(lexeme.features, asked) and (forms := [form for form in lexeme.shown if agrees(form, asked)]):
                choices += [(lexeme, forms)] * lexeme.weight
        for template in grammar.templates.get(symbol, ()):
            if template.weight and (bound := opened(template, asked)) is not None:
                choices.append((template, bound))
        if len(grammar.choices) >= _MOST_CHOICES:
            grammar.choices.clear()
        grammar.choices[key] = choices
    return choices
