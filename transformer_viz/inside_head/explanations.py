"""Explains how each number inside a head is computed, from the vector that enters to the residual stream after it.

Addresses are those of `numbers.py`, figures those of `rounding.py`.
"""

import math
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
    parsed,
    parts,
    scaled,
)
from transformer_viz.inside_head.numbers import others as other_heads
from transformer_viz.inside_head.rounding import Explanation, Row
from transformer_viz.language import say, sentences
from transformer_viz.terms import REASON_WORDS, Reason
from transformer_viz.trace.inside import Inside

_AGREES = 1e-3
"""A weight that differs from the softmax by more than this was made by something else, such as an edit."""


def explain(inside: Inside, address: str) -> Explanation:
    """Explains how the number at an address is computed.

    Args:
        inside: from `tv.inspect_head`.
        address: of a number, such as `score.2` or `product.2.5`: the key's place, and then the number's in a vector, from 1.

    Returns:
        The formula in words and the numbers that go into it, rounded so that they give what is shown.

    Raises:
        OptionError: this row has no such number.

    Examples:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse-small", device="cpu")
        >>> inside = tv.inspect_head(model, tv.decode(model, "planet"), "cross.1.1", query=0)
        >>> tv.explain(inside, "dot.2").words
        (('plain', 'The query times the key, place by place, and all of it added up.'),)
    """
    name, places = parsed(inside, address)
    row = Row(inside, address)
    return _formula(row, name, [place + 1 for place in places]) or row.given()


def _formula(row: Row, name: str, numbers: list[int]) -> Explanation | None:
    """Explains how a number is made of others; None where it is not. Keys and places count from 1, as in addresses."""
    inside = row.inside
    key, place = (numbers[0], numbers[-1]) if numbers else (0, 0)
    match name:
        case "entered" if inside.norm == "pre" and normed(inside) is not None:
            return row.chain(say("What the norm makes of the residual stream."), f"normed.{place}")
        case "entered" if inside.norm in ("post", "residual-post") and inside.residual_before is not None:
            return row.chain(say("The residual stream as it is: no norm stands before."), f"residual_before.{place}")
        case "product":
            words = say("One place of the query times the same place of the key.")
            return row.chain(words, f"query.{place} × key.{key}.{place}")
        case "dot":
            words = say("The query times the key, place by place, and all of it added up.")
            ats = range(1, len(inside.query) + 1)
            rows = [(str(at), f"query.{at}", f"key.{key}.{at}", f"product.{key}.{at}") for at in ats]
            return row.products(words, ("", "q", "× k", say("= product")), rows)
        case "scaled":
            return _scale(row, key)
        case "capped":
            return _cap(row, key)
        case "score" if inside.scale is not None and inside.bias is not None:
            before = next(name for name in ("capped", "scaled", "dot") if NUMBERS[name].make(inside) is not None)
            added = say("And the position bias added.")
            words = sentences([added, say("This model divides by nothing.")]) if inside.scale == 1 else added
            return row.chain(words, f"{before}.{key} + bias.{key}")
        case "score" if inside.scale is not None and inside.softcap is not None:
            return _cap(row, key)
        case "score" if inside.scale == 1:
            return row.chain(say("This model divides by nothing: the score is q · k."), f"dot.{key}")
        case "score" if inside.scale is not None:
            return _scale(row, key)
        case "mask" if reason := Reason(int(inside.reasons[key - 1])):
            why = say(REASON_WORDS.get(reason, "masked"))
            return row.given(say("The row may not look at this key: {why}. Its score becomes −∞, its weight 0.", why=why))
        case "mask":
            return row.given(say("The row may look at this key: nothing is masked here."))
        case "largest" | "sum" if inside.masked.all():
            return row.given(
                say("Every key is masked: there is no score.") if name == "largest" else say("Every key is masked.")
            )
        case "largest":
            most = int(np.where(inside.masked, -np.inf, inside.require("scores")).argmax())
            words = say(
                "The largest score that is not masked. Taken away from each, it changes no weight, and no power is too large."
            )
            return row.chain(words, f"score.{most + 1}")
        case "exp" if inside.masked[key - 1]:
            return row.given(say("The key is masked: e to −∞ is 0."))
        case "exp":
            words = say("e to how far the score is below the largest: 1 for the largest itself.")
            return row.chain(words, f"e^( score.{key} − largest", after=lambda made: made.exp(), end=")")
        case "sum":
            powers, others = exps(inside), {}
            shown = _summed(powers, ~inside.masked)
            terms = [f"exp.{one + 1}" for one in shown]
            if n_more := int((~inside.masked).sum()) - len(shown):
                terms.append("others")
                others["others"] = float(powers.sum() - powers[shown].sum()), say("{n_more} more keys", n_more=n_more)
            return row.chain(say("All of the row's powers of e together."), " + ".join(terms), others)
        case "weight" if inside.scores is not None and inside.masked.all():
            return row.given(say("Every key is masked: this row looks at nothing."))
        case "weight" if inside.scores is not None:
            powers = exps(inside)
            if not np.allclose(powers / powers.sum(), inside.weights, atol=_AGREES):
                return row.given(say("An edit or a mistake of the run put this weight in the place of what the softmax gave."))
            words = say("How much of this key's value goes into the output: its power of e as a share of the row's sum.")
            return row.chain(words, f"exp.{key} ÷ sum")
        case "part":
            return row.chain(say("The value times its weight."), f"weight.{key} × value.{key}.{place}")
        case "output":
            made = parts(inside)[:, place - 1]
            if not math.isclose(made.sum(), inside.output[place - 1], abs_tol=_AGREES):
                return row.given(say("An edit of the run put this in the place of what the head has found."))
            shown = _summed(exact(inside.weights), np.ones(len(made), dtype=bool))
            at = {one: f"{one + 1}.{place}" for one in shown}
            rows = [(label(inside, one), f"weight.{one + 1}", f"value.{i}", f"part.{i}") for one, i in at.items()]
            rest = None if len(shown) == len(made) else float(made.sum() - made[shown].sum())
            words = say("Every value's number at this place times its weight, added up.")
            return row.products(words, (say("key"), say("weight"), say("× value"), say("= part")), rows, rest)
        case "projected" if inside.out is not None:
            rows = [(str(i), f"output.{i}", f"out.{i}.{place}", None) for i in range(1, len(inside.output) + 1)]
            return row.products(say(NUMBERS[name].words), ("", say("output"), "× W_O", say("= product")), rows)
        case "added" if other_heads(inside) is not None:
            bias = "" if inside.out_bias is None else f" + out_bias.{place}"
            words = say("This head's share, those of the layer's other heads, and the bias where there is one.")
            return row.chain(words, f"projected.{place} + others.{place}{bias}")
        case "norm_input" if inside.norm == "pre":
            return row.chain(say("The norm stands first: it is given the residual stream."), f"residual_before.{place}")
        case "norm_input" if inside.norm == "residual-post":
            return row.chain(say("The norm is given what all heads add."), f"added.{place}")
        case "norm_input":
            words = say("The norm stands last: it is given what was there and what all heads add.")
            return row.chain(words, f"residual_before.{place} + added.{place}")
        case "normed":  # γ · (input − mean) / σ + β, as far as this norm has them
            mean = " − norm_mean" if inside.norm_kind == "layer" else ""
            weight = "" if inside.norm_weight is None else f" × norm_weight.{place}"
            bias = "" if inside.norm_bias is None else f" + norm_bias.{place}"
            words = say("Brought to one size, from left to right, so that no layer drowns the others.")
            return row.chain(
                words,
                f"norm_input.{place}{mean} ÷ norm_deviation{weight}{bias}",
            )
        case "residual_after" if inside.norm is not None and inside.added is not None and inside.residual_before is not None:
            if inside.norm == "pre":
                words = say("What was there, and what attention adds.")
                return row.chain(words, f"residual_before.{place} + added.{place}")
            if normed(inside) is not None and inside.norm == "post":
                return row.chain(say("What the norm makes of the sum."), f"normed.{place}")
            if normed(inside) is not None:
                words = say("What was there, and the norm of what attention adds.")
                return row.chain(words, f"residual_before.{place} + normed.{place}")
    return None


def _scale(row: Row, key: int) -> Explanation:
    """q · k through the model's scale."""
    scale, width = row.inside.scale, len(row.inside.query)
    assert scale is not None
    if math.isclose(scale, width**-0.5, rel_tol=1e-6):
        words = say("Divided by √{width}, for {width} places, so that longer vectors do not make larger scores.", width=width)
        return row.chain(words, f"dot.{key} ÷ √{width}", {f"√{width}": (1 / scale, f"√{width}")})
    return row.chain(say("Times what this model scales by."), f"dot.{key} × scale", {"scale": (scale, say("scale"))})


def _cap(row: Row, key: int) -> Explanation:
    cap = row.inside.softcap
    assert cap is not None
    limit = Decimal(repr(cap))

    def capped(made: Decimal) -> Decimal:
        power = (2 * made / limit).exp()
        return limit * (power - 1) / (power + 1)

    words = say("Softly capped, so that no score is beyond {cap:g}: c · tanh(score ÷ c) with c = {cap:g}.", cap=cap)
    return row.chain(words, f"scaled.{key}" if scaled(row.inside) is not None else f"dot.{key}", after=capped)


def _summed(sizes: np.ndarray, is_there: np.ndarray) -> list[int]:
    """The keys that stand in a sum one by one: all, or the largest of many, largest first."""
    there = np.flatnonzero(is_there)
    if len(there) <= MOST_KEYS:
        return there.tolist()
    return there[np.argsort(-sizes[there], kind="stable")[:LARGEST_KEYS]].tolist()
