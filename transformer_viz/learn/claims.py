"""The `claims` of a lesson's step: what its text says of a run, each a line that `lesson check` compares with the run.

`weight 5,9 = 0.24`, `looks cross.1.4 3 = 9·t`, `moment=227: writes 3 = h`, and what is computed by hand, `0.62 ÷ 2.69 = 0.23`.
"""

import ast
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl

from transformer_viz.analysis.measures import MEASURES
from transformer_viz.errors import LessonError, join_names
from transformer_viz.learn.links import Link, read_link
from transformer_viz.numbers_in_words import number_words, typed_number
from transformer_viz.terms import KINDS
from transformer_viz.text_display import quote_text

WRITING = ("writes", "probability", "log_p", "written")
"""The facts that a claim may say of what the model writes."""
FACTS = (
    *WRITING,
    *("taught", "reads", "weight", "looks", "darkest", "masked", "inside", "cause", "depends"),
    *("best", "name", "palest", "maps", "trained", "lengths", "frequent", *MEASURES),
)
"""The facts that a claim may speak of; `facts.py` finds each in a run."""
_PLACE = r"[1-9][0-9]{0,2}"
_CLAIM = re.compile(
    rf"(?:(?P<at>/\S*|[a-z_]+=\S*): )?(?P<what>[a-z_]+)(?: (?P<head>(?:{'|'.join(KINDS)})\.{_PLACE}\.{_PLACE}))?"
    rf"(?: (?P<row>{_PLACE})(?:,(?P<column>{_PLACE}))?)?(?: (?P<name>[^\s=<>]+))? (?P<sign>[=<>]) (?P<value>\S.*)"
)
_BY_HAND = re.compile(r"(?P<sum>[0-9.()+−×÷√^e ]+) = (?P<value>−?[0-9.]+)")


@dataclass(frozen=True)
class Claim:
    """A line of `claims`.

    Attributes:
        text: the line.
        at: the link of its run, or values of it that differ from the step's.
        what: a name of `FACTS`; empty where `sum` is computed by hand.
        head: an address; empty for the head in focus.
        row: from 0.
        column: from 0.
        name: of a token, or of a number inside a head.
        sign: `=`, `<` or `>`.
        value: what it is said to be.
        sum: an arithmetic expression.
    """

    text: str
    at: str = ""
    what: str = ""
    head: str = ""
    row: int | None = None
    column: int | None = None
    name: str = ""
    sign: str = "="
    value: str = ""
    sum: str = ""

    def link(self, start: Link) -> Link:
        """The link of its run: the step's with the claim's own values, or its own."""
        if self.at.startswith("/"):
            return read_link(self.at)
        return Link(start.page, {**start.values, **dict(parse_qsl(self.at, keep_blank_values=True))})

    @property
    def is_of_writing(self) -> bool:
        """Tells whether it speaks of what the model writes, and not of a map."""
        return self.what in WRITING

    def fault(self, found: float | str) -> str | None:
        """Says what is wrong with it, a sentence, where something else was found."""
        claimed = typed_number(self.value)
        if isinstance(found, str) or claimed is None:
            is_so, shown = self.sign == "=" and str(found) == self.value, str(found)
        else:
            places = len(self.value.rstrip(" %").partition(".")[2]) + 2 * self.value.endswith("%")
            # What is computed by hand begins with rounded numbers, so its last place may be one off.
            is_near = abs(found - claimed) <= (1 if self.sum else 0.5) * 10.0**-places + 1e-6
            is_so = {"=": is_near, "<": found < claimed, ">": found > claimed}[self.sign]
            shown = number_words(found, max(places, 3))
        return None if is_so else f"its claim {self.text!r} is not so; the run has {shown}"


def read_claim(text: str) -> Claim:
    """A claim from a line of a lesson.

    Raises:
        LessonError: it is none; the message says what one is.
    """
    if (match := _BY_HAND.fullmatch(text)) is not None:
        return Claim(text, sum=match["sum"], value=match["value"])
    match = _CLAIM.fullmatch(text)
    if match is None or match["what"] not in FACTS:
        raise LessonError(f"{quote_text(text)} is not a claim; write one like weight cross.1.2 5,9 = 0.24, that is one of "
                          f"{join_names(FACTS)}, a head, a row and a column, then =, < or > and the value")  # fmt: skip
    names = ("at", "what", "head", "name", "sign", "value")
    row, column = (None if match[name] is None else int(match[name]) - 1 for name in ("row", "column"))
    return Claim(text, row=row, column=column, **{name: match[name] or "" for name in names})


def computed(claim: Claim) -> float:
    """The value of an arithmetic expression.

    Raises:
        LessonError: it is none, or has no value.
    """
    plain = re.sub(r"√(\d+)", r"(\1^0.5)", claim.sum).translate(str.maketrans("−×÷", "-*/")).replace("^", "**")
    try:
        return _value(ast.parse(plain.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, KeyError, TypeError, RecursionError, MemoryError):
        raise LessonError(f"{quote_text(claim.text)} cannot be computed; write it like 0.62 ÷ 2.69 = 0.23") from None


_OPERATIONS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id="e"):
            return math.e
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATIONS[type(op)](_value(left), _value(right))
    raise ValueError
