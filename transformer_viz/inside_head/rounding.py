"""Rounds the terms and the result of a formula so that the shown numbers add up, if they can.

Numbers are rounded correctly, to three digits after the point. If the shown terms do not give the shown result, there are more
digits, up to six; if that does not help either, `is_rounded` says so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException, localcontext
from types import MappingProxyType
from typing import TYPE_CHECKING

from transformer_viz.inside_head.numbers import NUMBERS, label_of, value_of
from transformer_viz.language import say
from transformer_viz.numbers_in_words import number_words
from transformer_viz.trace.inside import Inside

# The package `analysis` has this module's results among its own.
if TYPE_CHECKING:
    from transformer_viz.sentences.run_sentences import Sentence

LEAST_DIGITS, MOST_DIGITS = 3, 6
"""After the point."""


@dataclass(frozen=True)
class Term:
    """A number in a formula: its name, the operator before it, and the address of its own explanation, if it has one."""

    figure: str
    words: str
    address: str | None = None
    operator: str = ""


@dataclass(frozen=True)
class Explanation:
    """The explanation of one number.

    Attributes:
        address: of the number.
        label: its name, for a title.
        words: how it is computed, in a sentence.
        heads: the column headings of a table of products; empty without a table.
        rows: the rows of that table.
        terms: the terms of the formula from left to right, the number last; after a table the number alone.
        is_rounded: whether the shown numbers do not quite add up.
    """

    address: str
    label: str
    words: "Sentence"
    heads: tuple[str, ...]
    rows: tuple[tuple[Term, ...], ...]
    terms: tuple[Term, ...]
    is_rounded: bool


@dataclass(frozen=True)
class Row:
    """Makes the explanation of one number."""

    inside: Inside
    address: str

    def given(self, words: str | None = None) -> Explanation:
        """A number that is not made of others here."""
        name = self.address.split(".")[0]
        return self._made(words or say(NUMBERS[name].words) or say("A number of the run."), (), MOST_DIGITS, False)

    def chain(
        self,
        words: str,
        formula: str,
        numbers: Mapping[str, tuple[float, str]] = MappingProxyType({}),
        after: Callable[[Decimal], Decimal] = lambda made: made,
        end: str = "",
    ) -> Explanation:
        """Applies operators to terms, from left to right whatever they are, and `after` of that.

        Args:
            words: how it is computed.
            formula: as `exp.3 ÷ sum`, addresses with operators between them, and perhaps one before the first.
            numbers: those that have no address, each with its name, by what stands for them in the formula.
            after: a function of what the operators make.
            end: what stands behind the last term.
        """
        parts = formula.split()
        parts = parts if len(parts) % 2 == 0 else ["", *parts]
        terms = []
        for operator, name in zip(parts[::2], parts[1::2], strict=True):
            value, said, address = (*numbers[name], None) if name in numbers else self._operand(name)
            terms.append((operator, value, said, address))
        result = value_of(self.inside, self.address)
        for digits in range(LEAST_DIGITS, MOST_DIGITS + 1):
            made = _computed([(operator, value) for operator, value, _, _ in terms], digits, digits, after)
            if made == _rounded(result, digits):
                return self._made(words, terms, digits, False, end)
        return self._made(words, terms, LEAST_DIGITS, True, end)

    def products(
        self, words: str, heads: tuple[str, ...], rows: Sequence[tuple[str, str, str, str | None]], rest: float | None = None
    ) -> Explanation:
        """A sum of products.

        Args:
            words: what is added up.
            heads: of the table's columns.
            rows: the name of each product, the addresses of its two factors, and its own, if it has one.
            rest: what the products that have no row are together.
        """
        result = value_of(self.inside, self.address)
        products = [(name, self._operand(a), self._operand(b), address) for name, a, b, address in rows]
        values = [a[0] * b[0] for _, a, b, _ in products]
        sums = values if rest is None else [*values, rest]
        of_factors, digits, is_rounded = LEAST_DIGITS, LEAST_DIGITS, True
        for fewest in range(LEAST_DIGITS, MOST_DIGITS + 1):
            # So many digits of the factors that they make each product with its own.
            rounded = [_rounded(value, fewest) for value in values]
            enough = next(
                (
                    more
                    for more in range(fewest, MOST_DIGITS + 1)
                    if rounded == [_computed([("", a[0]), ("×", b[0])], more, fewest) for _, a, b, _ in products]
                ),
                None,
            )
            if enough is not None and sum(_rounded(each, fewest) for each in sums) == _rounded(result, fewest):
                of_factors, digits, is_rounded = enough, fewest, False
                break
        lines = [
            (
                Term(name, name),
                *(Term(number_words(factor, of_factors), said, own) for factor, said, own in (a, b)),
                Term(number_words(value, digits), say("product, {name}", name=name), address),
            )
            for (name, a, b, address), value in zip(products, values, strict=True)
        ]
        if rest is not None:
            n_more, together = len(self.inside.key_tokens) - len(rows), Term(number_words(rest, digits), say("together"))
            lines.append((Term(say("{n} more", n=n_more), say("the other keys")), Term("", ""), Term("", ""), together))
        total = Term(number_words(result, digits), say("all products added up"), None, "=")
        return Explanation(self.address, self._label, (("plain", words),), heads, tuple(lines), (total,), is_rounded)

    def _made(
        self, words: str, terms: Sequence[tuple[str, float, str, str | None]], digits: int, is_rounded: bool, end: str = ""
    ) -> Explanation:
        shown = [Term(number_words(value, digits), said, address, operator) for operator, value, said, address in terms]
        result = Term(number_words(value_of(self.inside, self.address), digits), self._label, None, f"{end} =".strip())
        return Explanation(self.address, self._label, (("plain", words),), (), (), (*shown, result), is_rounded)

    def _operand(self, address: str) -> tuple[float, str, str | None]:
        return value_of(self.inside, address), label_of(self.inside, address), address

    @property
    def _label(self) -> str:
        return label_of(self.inside, self.address)


_CONTEXT = Context(prec=60)


def _rounded(value: float, digits: int) -> Decimal:
    """The digits that `number_words` shows."""
    return Decimal(f"{value:.{digits}f}")


def _computed(
    terms: Sequence[tuple[str, float]], of_terms: int, of_result: int, after: Callable[[Decimal], Decimal] = lambda made: made
) -> Decimal | None:
    """Computes the result of terms with so many digits, rounded to those of the result; None where that is no number."""
    with localcontext(_CONTEXT):
        try:
            made = Decimal(0)
            for operator, value in terms:
                made = _OPERATORS[operator](made, _rounded(value, of_terms))
            made = after(made)
            return made.quantize(Decimal(1).scaleb(-of_result)) if made.is_finite() else None
        except DecimalException:
            return None


_OPERATORS: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "": lambda made, term: term,
    "e^(": lambda made, term: term,
    "+": lambda made, term: made + term,
    "−": lambda made, term: made - term,
    "×": lambda made, term: made * term,
    "÷": lambda made, term: made / term,
}
