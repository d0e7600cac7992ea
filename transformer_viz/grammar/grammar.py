"""The grammar as data, and its reader: a file with the lexicon (one line a word) and one with the templates (one line each).

A feature has a set of values, kept as the bits of a whole number; two sets agree where they have a value in common. A
template's variables are shared by its parts, which is how a subject decides the form of its verb in both languages.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from transformer_viz import untrusted_files
from transformer_viz.errors import FileError

ANY = -1
"""Stands for all values of a feature."""
_WEIGHT = "weight"
"""No feature: how often a word or a form is drawn, beside the others."""
_LARGEST_FILE = 4 * 2**20
_ITEM = re.compile(r"([A-Z]{2,})(\d*)(?:\.([a-z]+))?(?:\[([^\]]*)\])?(?:@(\S+))?")

Features = dict[str, int]
"""Feature -> set of values, as bits."""


@dataclass(frozen=True)
class Word:
    """A word of one side.

    Attributes:
        text: as it is written.
        anchor: what it is aligned with, on the target side: the number of a word of the same lexeme's source form from 1, a
            feature's value of the source occurrence, `-` for none, or None for the default.
    """

    text: str
    anchor: str | None = None


@dataclass(frozen=True)
class Form:
    """A form of a lexeme in one language: when it is used, and its words (several, one or none)."""

    features: Features
    words: tuple[Word, ...]
    weight: int = 1
    """The weight with which it is drawn, beside the other forms."""


@dataclass(frozen=True, eq=False)
class Lexeme:
    """A word with its translation: all forms of both languages."""

    symbol: str
    name: str
    features: Features
    forms: tuple[tuple[Form, ...], tuple[Form, ...]]
    """The forms of the source language and of the target language."""
    weight: int = 1
    """The weight with which it is drawn, beside the others of its class."""

    @cached_property
    def shown(self) -> list[Features]:
        """The features that each source form shows, its own and the word's; as often as its weight."""
        return [{**self.features, **form.features} for form in self.forms[0] for _ in range(form.weight)]


@dataclass(frozen=True)
class Literal:
    """A word that a template says itself; on the target side with the item or source literal that it is aligned with."""

    word: str
    anchor: str | None = None


@dataclass(frozen=True)
class Item:
    """A place of a template, for a word class or a phrase.

    Attributes:
        name: items of the same name in a template are one and the same word or phrase.
        symbol: of the class or phrase.
        part: which part of a phrase in several parts; `""` for a whole one.
        constants: what it must agree with.
        variables: (feature, variable).
        anchor: on the target side, what all its words are aligned with instead of its own source words.
    """

    name: str
    symbol: str
    part: str
    constants: Features
    variables: tuple[tuple[str, str], ...]
    tags: tuple[str, ...] = ()
    anchor: str | None = None


Sequence = tuple[Item | Literal, ...]


@dataclass(frozen=True, eq=False)
class Template:
    """One way to make a phrase in both languages."""

    symbol: str
    constants: Features
    variables: tuple[tuple[str, str], ...]
    weight: float
    sides: tuple[dict[str, Sequence], dict[str, Sequence]]
    """The items of each part, for each language; a phrase in one part has the part `""`."""
    items: tuple[Item, ...] = ()
    """The first occurrence of each of its items, in the order in which they are drawn."""


@dataclass
class Grammar:
    """A lexicon and templates, indexed."""

    values: dict[str, int] = field(default_factory=dict)
    """Value of a feature -> its bit."""
    lexemes: dict[str, list[Lexeme]] = field(default_factory=dict)
    templates: dict[str, list[Template]] = field(default_factory=dict)
    kinds: dict[str, Item] = field(default_factory=dict)
    """Kind of sentence -> the phrase that it is."""
    contacts: list[tuple[str, re.Pattern[str], str, bool]] = field(default_factory=list)
    """(word, what comes next, the word instead, whether the next one is swallowed), of the target language."""
    pairs: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of paths: words whose combinations can be held out."""
    once: set[str] = field(default_factory=set)
    """Word classes of which no sentence that is drawn has a word twice."""
    first: set[str] = field(default_factory=set)
    """Word classes and phrases that are drawn before the others of a template, which depend on them."""
    by_word: dict[str, dict[str, list[tuple[Lexeme, Form]]]] = field(default_factory=dict)
    """Symbol -> first source word -> forms; `""` has the forms without words."""
    choices: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    """The forms that were found for a symbol and the features that were asked of it, while drawing."""

    def bits(self, values: str) -> int:
        """`a|b` as a set."""
        bits = 0
        for value in values.split("|"):
            bits |= self.values.setdefault(value, 1 << len(self.values))
        return bits

    def words(self, side: int) -> list[str]:
        """Every word of a language, each once, in alphabetical order."""
        words: set[str] = set()
        for lexemes in self.lexemes.values():
            words |= {word.text for lexeme in lexemes for form in lexeme.forms[side] for word in form.words}
        for templates in self.templates.values():
            sequences = [part for template in templates for part in template.sides[side].values()]
            words |= {item.word for sequence in sequences for item in sequence if isinstance(item, Literal)}
        if side:
            words |= {instead for _, _, instead, _ in self.contacts}
        return sorted(words)


def load_grammar(lexicon: Path, templates: Path) -> Grammar:
    """A grammar from its two files.

    Raises:
        FileError: a line is not as it must be; the message names it.
    """
    grammar = Grammar()
    for file, read_line in ((lexicon, _LexiconReader(grammar).read_line), (templates, partial(_read_template, grammar))):
        for number, text in enumerate(untrusted_files.read_text(file, _LARGEST_FILE).splitlines(), start=1):
            line = text.split("#")[0].rstrip()
            try:
                if line:
                    read_line(line)
            except (ValueError, KeyError, IndexError) as error:
                raise FileError(f"{file.name}, line {number}, {line.strip()[:60]!r}: {error}") from error
    for symbol, lexemes in grammar.lexemes.items():
        index = grammar.by_word.setdefault(symbol, {})
        for lexeme in lexemes:
            for form in lexeme.forms[0]:
                index.setdefault(form.words[0].text if form.words else "", []).append((lexeme, form))
    known = {*grammar.lexemes, *grammar.templates}
    for template in [t for several in grammar.templates.values() for t in several]:
        sequences = [sequence for side in template.sides for sequence in side.values()]
        for item in [item for sequence in sequences for item in sequence if isinstance(item, Item)]:
            if item.symbol not in known:
                raise FileError(f"{templates.name}: {item.symbol} is neither a word class of the lexicon nor a phrase")
    return grammar


Paradigm = list[tuple[str, str]]
"""(forms with `{1}` for a column, features) of one language."""


class _LexiconReader:
    """Reads `let` (what a value implies), `copy` (a second name of a feature), `paradigm` with its lines, and `words`."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.paradigms: dict[str, Paradigm] = {}
        self.implied: dict[tuple[str, str], str] = {}
        self.copied: list[tuple[str, str]] = []
        self.open_paradigm: Paradigm | None = None
        self.symbol, self.sides, self.common = "", ("", ""), ""

    def read_line(self, line: str) -> None:
        """One line; what it means may depend on the `paradigm` or `words` before it."""
        head, *rest = line.split()
        if line.startswith("let "):
            feature, value = rest[0].split("=")
            self.implied[feature, value] = rest[1]
        elif line.startswith("copy "):
            self.copied.append((rest[0], rest[1]))
        elif line.startswith("paradigm "):
            self.open_paradigm = self.paradigms.setdefault(rest[0], [])
        elif line.startswith("words "):
            self.symbol, self.sides, self.common = rest[0], (rest[1], rest[2]), " ".join(rest[3:])
            self.open_paradigm = None
        elif self.open_paradigm is not None:
            self.open_paradigm.append((head, " ".join(rest)))
        else:
            self.read_word(line)

    def read_word(self, line: str) -> None:
        """`source columns | target columns | features`."""
        source, target, *more = [part.strip() for part in line.split("|", 2)]
        features = _features(self.grammar, f"{self.common} {more[0] if more else ''}", self.implied)
        weight = features.pop(_WEIGHT, 1)
        features |= {copy: features[feature] for feature, copy in self.copied if feature in features}
        forms = [
            tuple(_forms(self.grammar, self.paradigms[name], columns.split()))
            for name, columns in zip(self.sides, (source, target), strict=True)
        ]
        name = "_".join(word.text for word in forms[0][0].words)
        lexeme = Lexeme(self.symbol, name, features, (forms[0], forms[1]), weight)
        self.grammar.lexemes.setdefault(self.symbol, []).append(lexeme)


def _features(grammar: Grammar, text: str, implied: Mapping[tuple[str, str], str]) -> Features:
    """`kind=animal case=nom|acc`, with what the values imply; a later one stands in the place of an earlier one."""
    features: Features = {}
    for part in text.split():
        feature, values = part.split("=")
        if feature == _WEIGHT:
            features[feature] = int(values)
            continue
        features[feature] = grammar.bits("|".join(implied.get((feature, value), value) for value in values.split("|")))
    return features


def _forms(grammar: Grammar, paradigm: Paradigm, columns: list[str]) -> Iterator[Form]:
    """`-` is a form without words, `!` is none at all, `_` stands between the words of one form."""
    numbered = {str(i): "" if column == "-" else column for i, column in enumerate(columns, 1)}
    for pattern, features in paradigm:
        used = re.findall(r"\{(\d)\}", pattern)
        if any(n not in numbered for n in used):
            raise ValueError("the word has fewer columns than its paradigm uses")
        text = re.sub(r"\{(\d)\}", lambda match: numbered[match.group(1)], pattern)
        if "!" not in text:
            words = [word for word in text.split("_") if word not in ("", "-")]
            parts = (word.partition("@") for word in words)
            shown = _features(grammar, features, {})
            weight = shown.pop(_WEIGHT, 1)
            yield Form(shown, tuple(Word(word, anchor or None) for word, _, anchor in parts), weight)


def _read_template(grammar: Grammar, line: str) -> None:
    """`kind`, `contact`, `once`, `first`, `pair`, or a template: `PHRASE[features]*weight = source > target`."""
    head, _, rest = line.partition(" ")
    if head == "kind":
        name, _, phrase = rest.partition(":")
        grammar.kinds[name.strip()] = _item(grammar, phrase.strip())
    elif head == "contact":
        word, following, instead, *swallow = rest.split()
        grammar.contacts.append((word, re.compile(following), instead, bool(swallow)))
    elif head == "once":
        grammar.once |= set(rest.split())
    elif head == "first":
        grammar.first |= set(rest.split())
    elif head == "pair":
        first, second = rest.split()
        grammar.pairs.append((first, second))
    else:
        made, _, both = line.partition(" = ")
        made, _, weight = made.strip().partition("*")
        item = _item(grammar, made)
        source, between, target = both.partition(">")
        if not between:
            raise ValueError("the sign > between source and target is missing")
        sides = _side(grammar, source), _side(grammar, target)
        first_of: dict[str, Item] = {}
        for place in [place for sequence in sides[0].values() for place in sequence if isinstance(place, Item)]:
            first_of.setdefault(place.name, place)
        for place in [place for sequence in sides[1].values() for place in sequence if isinstance(place, Item)]:
            if place.name not in first_of:
                raise ValueError(f"{place.name} stands right of the sign > and not left of it")
        items = tuple(sorted(first_of.values(), key=lambda place: place.symbol not in grammar.first))
        template = Template(item.symbol, item.constants, item.variables, float(weight or 1), sides, items)
        grammar.templates.setdefault(item.symbol, []).append(template)


def _side(grammar: Grammar, text: str) -> dict[str, Sequence]:
    """`fin: A B ; end: C`, or the items of the one part."""
    parts: dict[str, Sequence] = {}
    for piece in text.split(";") if re.match(r"\s*[a-z]+: ", text) else [": " + text]:
        name, _, items = piece.partition(":")
        tokens = re.findall(r"[A-Z]{2,}[0-9]*(?:\.[a-z]+)?(?:\[[^\]]*\])?(?:@\S+)?|\S+", items)
        parts[name.strip()] = tuple(_item(grammar, token) if _ITEM.fullmatch(token) else _literal(token) for token in tokens)
    return parts


def _literal(token: str) -> Literal:
    word, _, anchor = token.partition("@")
    return Literal(word, anchor or None)


def _item(grammar: Grammar, token: str) -> Item:
    """`NP1.part[case=nom agr=A]@ANCHOR`: an upper-case value is a variable."""
    match = _ITEM.fullmatch(token)
    if match is None:
        raise ValueError(f"{token!r} names no word class or phrase, as NP1[case=nom] does")
    symbol, number, part, inside, anchor = match.groups()
    constants: Features = {}
    variables: list[tuple[str, str]] = []
    tags: list[str] = []
    for text in (inside or "").split():
        feature, _, value = text.partition("=")
        if value.isupper():
            variables.append((feature, value))
        else:
            constants[feature] = grammar.bits(value)
            tags += value.split("|")
    return Item(symbol + number, symbol, part or "", constants, tuple(variables), tuple(tags), anchor)
