"""Explains how each number inside a head is computed, from the vector that enters to the residual stream after it.

Addresses are those of `numbers.py`, figures those of `rounding.py`.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal

import numpy as np

from transformer_viz.inside_head.numbers import (
    LARGEST_KEYS,
    MOST_KEYS,
    NUMBERS,
    exact,
    exps,
    label,
    normed,
    others,
    parsed,
    parts,
    scaled,
)
from transformer_viz.inside_head.rounding import Explanation, Row
from transformer_viz.terms import REASON_WORDS, Reason
from transformer_viz.trace.inside import Inside

_AGREES = 1e-3
"""A weight that differs from the softmax by more than this was made by something else, such as an edit."""


def explain(inside: Inside, address: str) -> Explanation:
    """Explains how the number at an address is computed.

    Raises:
        OptionError: this row has no such number.
    """
    name, places = parsed(inside, address)
    if name in _FORMULAS and (found := _FORMULAS[name](Row(inside, address), *places)) is not None:
        return found
    return Row(inside, address).given()


# ---- the formulas


def _product(row: Row, key: int, place: int) -> Explanation:
    formula = f"query.{place + 1} × key.{key + 1}.{place + 1}"
    return row.chain("One place of the query times the same place of the key.", formula)


def _dot(row: Row, key: int) -> Explanation:
    places = range(1, len(row.inside.query) + 1)
    rows = [(str(at), f"query.{at}", f"key.{key + 1}.{at}", f"product.{key + 1}.{at}") for at in places]
    return row.products("The query times the key, place by place, and all of it added up.", ("", "q", "× k", "= product"), rows)


def _scale(row: Row, key: int) -> Explanation:
    """q · k through the model's scale."""
    inside = row.inside
    assert inside.scale is not None
    width = len(inside.query)
    if math.isclose(inside.scale, width**-0.5, rel_tol=1e-6):
        words = f"Divided by √{width}, for {width} places, so that longer vectors do not make larger scores."
        return row.chain(words, f"dot.{key + 1} ÷ √{width}", {f"√{width}": (1 / inside.scale, f"√{width}")})
    return row.chain("Times what this model scales by.", f"dot.{key + 1} × scale", {"scale": (inside.scale, "scale")})


def _capped_score(row: Row, key: int) -> Explanation:
    cap = row.inside.softcap
    assert cap is not None
    limit = Decimal(repr(cap))
    words = f"Softly capped, so that no score is beyond {cap:g}: c · tanh(score ÷ c) with c = {cap:g}."
    before = f"scaled.{key + 1}" if scaled(row.inside) is not None else f"dot.{key + 1}"
    return row.chain(words, before, after=lambda made: limit * _tanh(made / limit))


def _score(row: Row, key: int) -> Explanation | None:
    inside = row.inside
    if inside.scale is None:
        return None
    if inside.bias is not None:
        name = next(name for name in ("capped", "scaled", "dot") if NUMBERS[name].make(inside) is not None)
        words = "And the position bias added." + (" This model divides by nothing." if inside.scale == 1 else "")
        return row.chain(words, f"{name}.{key + 1} + bias.{key + 1}")
    if inside.softcap is not None:
        return _capped_score(row, key)
    if inside.scale == 1:
        return row.chain("This model divides by nothing: the score is q · k.", f"dot.{key + 1}")
    return _scale(row, key)


def _mask(row: Row, key: int) -> Explanation:
    reason = Reason(int(row.inside.reasons[key]))
    if not reason:
        return row.given("The row may look at this key: nothing is masked here.")
    return row.given(
        f"The row may not look at this key: {REASON_WORDS.get(reason, 'masked')}. Its score becomes −∞, its weight 0."
    )


def _largest(row: Row) -> Explanation:
    inside = row.inside
    if inside.masked.all():
        return row.given("Every key is masked: there is no score.")
    key = int(np.where(inside.masked, -np.inf, inside.require("scores")).argmax())
    words = "The largest score that is not masked. Taken away from each, it changes no weight, and no power is too large."
    return row.chain(words, f"score.{key + 1}")


def _exp(row: Row, key: int) -> Explanation:
    if row.inside.masked[key]:
        return row.given("The key is masked: e to −∞ is 0.")
    words = "e to how far the score is below the largest: 1 for the largest itself."
    return row.chain(words, f"e^( score.{key + 1} − largest", after=lambda made: made.exp(), end=")")


def _sum(row: Row) -> Explanation:
    """The sum over all keys that are not masked; with many, the largest ones and the rest as one term."""
    inside, powers = row.inside, exps(row.inside)
    keys = _summed(powers, ~inside.masked)
    terms, numbers = [f"exp.{key + 1}" for key in keys], {}
    if n_more := int((~inside.masked).sum()) - len(keys):
        terms.append("others")
        numbers["others"] = float(powers.sum() - powers[keys].sum()), f"{n_more} more keys"
    words = "All of the row's powers of e together."
    return row.chain(words, " + ".join(terms), numbers) if terms else row.given("Every key is masked.")


def _summed(sizes: np.ndarray, is_there: np.ndarray) -> list[int]:
    """The keys that stand in a sum one by one: all, or the largest of many, largest first."""
    there = np.flatnonzero(is_there)
    if len(there) <= MOST_KEYS:
        return there.tolist()
    return there[np.argsort(-sizes[there], kind="stable")[:LARGEST_KEYS]].tolist()


def _weight(row: Row, key: int) -> Explanation | None:
    inside = row.inside
    if inside.scores is None:
        return None
    if inside.masked.all():
        return row.given("Every key is masked: this row looks at nothing.")
    powers = exps(inside)
    if not np.allclose(powers / powers.sum(), inside.weights, atol=_AGREES):
        return row.given("An edit or a mistake of the run put this weight in the place of what the softmax gave.")
    words = "How much of this key's value goes into the output: its power of e as a share of the row's sum."
    return row.chain(words, f"exp.{key + 1} ÷ sum")


def _part(row: Row, key: int, place: int) -> Explanation:
    return row.chain("The value times its weight.", f"weight.{key + 1} × value.{key + 1}.{place + 1}")


def _output(row: Row, place: int) -> Explanation:
    inside, made = row.inside, parts(row.inside)[:, place]
    if not math.isclose(made.sum(), inside.output[place], abs_tol=_AGREES):
        return row.given("An edit of the run put this in the place of what the head has found.")
    keys = _summed(exact(inside.weights), np.ones(len(made), dtype=bool))
    at = [f"{key + 1}.{place + 1}" for key in keys]
    rows = [(label(inside, key), f"weight.{key + 1}", f"value.{i}", f"part.{i}") for key, i in zip(keys, at, strict=True)]
    rest = None if len(keys) == len(made) else float(made.sum() - made[keys].sum())
    words, heads = "Every value's number at this place times its weight, added up.", ("key", "weight", "× value", "= part")
    return row.products(words, heads, rows, rest)


def _projected(row: Row, place: int) -> Explanation | None:
    inside = row.inside
    if inside.out is None:
        return None
    rows = [(str(i), f"output.{i}", f"out.{i}.{place + 1}", None) for i in range(1, len(inside.output) + 1)]
    return row.products(NUMBERS["projected"].words, ("", "output", "× W_O", "= product"), rows)


def _added(row: Row, place: int) -> Explanation | None:
    if others(row.inside) is None:
        return None
    formula = f"projected.{place + 1} + others.{place + 1}"
    formula += "" if row.inside.out_bias is None else f" + out_bias.{place + 1}"
    return row.chain("This head's share, those of the layer's other heads, and the bias where there is one.", formula)


def _norm_input(row: Row, place: int) -> Explanation:
    before, added = f"residual_before.{place + 1}", f"added.{place + 1}"
    if row.inside.norm == "pre":
        return row.chain("The norm stands first: it is given the residual stream.", before)
    if row.inside.norm == "residual-post":
        return row.chain("The norm is given what all heads add.", added)
    return row.chain("The norm stands last: it is given what was there and what all heads add.", f"{before} + {added}")


def _norm(row: Row, place: int) -> Explanation:
    """γ · (input − mean) / σ + β, as far as this norm has them."""
    inside = row.inside
    formula = f"norm_input.{place + 1}" + (" − norm_mean" if inside.norm_kind == "layer" else "") + " ÷ norm_deviation"
    formula += "" if inside.norm_weight is None else f" × norm_weight.{place + 1}"
    formula += "" if inside.norm_bias is None else f" + norm_bias.{place + 1}"
    return row.chain("Brought to one size, from left to right, so that no layer drowns the others.", formula)


def _entered(row: Row, place: int) -> Explanation | None:
    inside = row.inside
    if inside.norm == "pre" and normed(inside) is not None:
        return row.chain("What the norm makes of the residual stream.", f"normed.{place + 1}")
    if inside.norm in ("post", "residual-post") and inside.residual_before is not None:
        return row.chain("The residual stream as it is: no norm stands before.", f"residual_before.{place + 1}")
    return None


def _after(row: Row, place: int) -> Explanation | None:
    inside = row.inside
    if inside.norm is None or inside.added is None or inside.residual_before is None:
        return None
    before, made = f"residual_before.{place + 1}", f"normed.{place + 1}"
    if inside.norm == "pre":
        return row.chain("What was there, and what attention adds.", f"{before} + added.{place + 1}")
    if normed(inside) is None:
        return None
    if inside.norm == "post":
        return row.chain("What the norm makes of the sum.", made)
    return row.chain("What was there, and the norm of what attention adds.", f"{before} + {made}")


def _tanh(x: Decimal) -> Decimal:
    power = (2 * x).exp()
    return (power - 1) / (power + 1)


_FORMULAS: Mapping[str, Callable[..., Explanation | None]] = {
    "entered": _entered,
    "product": _product,
    "dot": _dot,
    "scaled": _scale,
    "capped": _capped_score,
    "score": _score,
    "mask": _mask,
    "largest": _largest,
    "exp": _exp,
    "sum": _sum,
    "weight": _weight,
    "part": _part,
    "output": _output,
    "projected": _projected,
    "added": _added,
    "norm_input": _norm_input,
    "normed": _norm,
    "residual_after": _after,
}
