"""Turns a derivation into a sentence pair: the words of both languages, and the source word of each target word."""

from dataclasses import dataclass, field

from transformer_viz.grammar.grammar import Features, Grammar, Item, Lexeme, Literal
from transformer_viz.grammar.tree import Tree, agrees, opened, wanted


@dataclass(frozen=True)
class SentencePair:
    """A sentence and its translation.

    Attributes:
        source: words.
        target: words.
        alignment: for each target word the index of its source word, or None.
        combinations: pairs of lexemes, of the kinds that can be held out.
        phrase: symbol of the template that the sentence is.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[int | None, ...]
    combinations: frozenset[tuple[str, str]]
    phrase: str


@dataclass
class _Placed:
    """The words of a sentence so far, and where the parts of the derivation stand in them."""

    words: list[str] = field(default_factory=list)
    alignment: list[int | None] = field(default_factory=list)
    places: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    """(identity of a tree, name in it or name.tag) -> source places."""


def tree_pair(grammar: Grammar, tree: Tree) -> SentencePair | None:
    """Both sides of a derivation; None where a word has no form for what is wanted of it."""
    narrowed_tree = _settled(tree, {})
    if narrowed_tree is None:
        return None
    placed = _Placed()
    if not _say(narrowed_tree, "", 0, placed):
        return None
    source = tuple(placed.words)
    placed.words = []
    if not _say(narrowed_tree, "", 1, placed):
        return None
    _meet(grammar, placed)
    pairs = frozenset(_combinations(grammar, narrowed_tree))
    return SentencePair(source, tuple(placed.words), tuple(placed.alignment), pairs, tree.template.symbol)


def _settled(tree: Tree, asked: Features) -> Tree | None:
    """The tree with the features of its top passed down to all its parts; None where they contradict each other."""
    bound = opened(tree.template, asked)
    if bound is None:
        return None
    known = dict(tree.bound)
    for variable, values in bound.items():
        known[variable] = known.get(variable, -1) & values
        if not known[variable]:
            return None
    children: dict[str, Tree | Lexeme] = {}
    for item in tree.template.items:
        child = tree.children[item.name]
        if isinstance(child, Tree):
            below = _settled(child, wanted(known, item))
            if below is None:
                return None
            child = below
        children[item.name] = child
    return Tree(tree.template, known, children)


def _say(tree: Tree, part: str, side: int, placed: _Placed) -> bool:
    for item in tree.template.sides[side][part]:
        if isinstance(item, Literal):
            if side:
                there = placed.places.get((id(tree), item.anchor), []) if item.anchor else []
                placed.alignment.append(there[0] if there else None)
            else:
                placed.places.setdefault((id(tree), item.word), []).append(len(placed.words))
            placed.words.append(item.word)
            continue
        child, begin = tree.children[item.name], len(placed.words)
        if isinstance(child, Lexeme):
            required = wanted(tree.bound, item)
            form = next((f for f in child.forms[side] if agrees({**child.features, **f.features}, required)), None)
            if form is None:
                return False
            own = placed.places.get((id(tree), item.name), [])
            for number, word in enumerate(form.words):
                placed.words.append(word.text)
                if side:
                    placed.alignment.append(_place_of(tree, item, word.anchor, number, len(form.words), own, placed))
        elif not _say(child, item.part, side, placed):
            return False
        if not side:
            places = list(range(begin, len(placed.words)))
            placed.places.setdefault((id(tree), item.name), []).extend(places)
            for tag in item.tags if isinstance(child, Lexeme) else ():
                placed.places.setdefault((id(tree), f"{item.name}.{tag}"), []).extend(places)
        elif item.anchor is not None:
            there = placed.places.get((id(tree), item.anchor), []) if item.anchor != "-" else []
            placed.alignment[begin:] = [there[0] if there else None] * (len(placed.words) - begin)
    return True


def _place_of(
    tree: Tree, item: Item, anchor: str | None, number: int, n_words: int, own: list[int], placed: _Placed
) -> int | None:
    """The source of a target word of a lexeme: see `Word.anchor`; word by word where both have as many, else the first."""
    if anchor == "-" or not own:
        return None
    if anchor is None:
        return own[number] if len(own) == n_words else own[0]
    if anchor.isdigit():
        return own[int(anchor) - 1]
    tagged = placed.places.get((id(tree), f"{item.name}.{anchor}"), [])
    return tagged[0] if tagged else own[0]


def _meet(grammar: Grammar, placed: _Placed) -> None:
    """Changes words before others, such as `a` before a vowel."""
    for word, following, instead, swallows in grammar.contacts:
        i = 0
        while i + 1 < len(placed.words):
            if placed.words[i] == word and following.match(placed.words[i + 1]):
                placed.words[i] = instead
                if swallows:
                    del placed.words[i + 1], placed.alignment[i + 1]
            i += 1


def _combinations(grammar: Grammar, tree: Tree) -> list[tuple[str, str]]:
    pairs = []
    for first, second in grammar.pairs:
        one, other = _word_at(tree, first), _word_at(tree, second)
        if one and other:
            pairs.append((one.name, other.name))
    for child in tree.children.values():
        if isinstance(child, Tree):
            pairs += _combinations(grammar, child)
    return pairs


def _word_at(tree: Tree, path: str) -> Lexeme | None:
    """`OBJ/NOUN`: the first NOUN somewhere in the child OBJ; `ADJ`: the child ADJ itself."""
    name, _, symbol = path.partition("/")
    child = tree.children.get(name)
    if child is None or not symbol:
        return child if isinstance(child, Lexeme) else None
    return _first_word(child, symbol)


def _first_word(tree: Tree | Lexeme, symbol: str) -> Lexeme | None:
    if isinstance(tree, Lexeme):
        return tree if tree.symbol == symbol else None
    return next((word for child in tree.children.values() if (word := _first_word(child, symbol))), None)
