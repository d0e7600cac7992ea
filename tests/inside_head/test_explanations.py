"""The arithmetic of the numbers inside a head: what is shown adds up, or says that it is rounded."""

import math
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_viz.errors import OptionError
from transformer_viz.inside_head import explanations, numbers
from transformer_viz.inside_head.rounding import Explanation, Term
from transformer_viz.numbers_in_words import number_words
from transformer_viz.trace.inside import Inside

DIGITS = (3, 4, 5, 6)


def made(seed: int, n_keys: int = 5, width: int = 4, **changes: Any) -> Inside:
    """Random numbers that belong together: the head's formulas, in numpy."""
    random = np.random.default_rng(seed)
    fields: dict[str, Any] = {
        "scale": width**-0.5,
        "norm": "pre",
        "norm_kind": "layer",
        "bias": None,
        "softcap": None,
    } | changes
    query, keys, values = random.normal(size=width) * 3, random.normal(size=(n_keys, width)), random.normal(size=(n_keys, 3))
    scores = keys @ query * fields["scale"]
    scores = scores if fields["softcap"] is None else fields["softcap"] * np.tanh(scores / fields["softcap"])
    scores = scores if fields["bias"] is None else scores + fields["bias"]
    reasons = fields.pop("reasons", np.zeros(n_keys, np.uint8))
    powers = np.where(reasons > 0, 0, np.exp(scores - scores.max()))
    weights = fields.pop("weights", powers / max(powers.sum(), 1e-300))
    output, out = weights @ values, random.normal(size=(3, 6))
    streams = {name: random.normal(size=6) for name in ("out_bias", "others", "residual_before", "norm_weight", "norm_bias")}
    added = output @ out + streams.pop("others") + streams["out_bias"]
    before, gamma, beta = streams["residual_before"], streams["norm_weight"], streams["norm_bias"]

    def normed(x: np.ndarray) -> np.ndarray:
        mean = x.mean() if fields["norm_kind"] == "layer" else 0
        return (x - mean) / np.sqrt(((x - mean) ** 2).mean() + 1e-5) * gamma + beta

    after = {"pre": before + added, "post": normed(before + added), "residual-post": before + normed(added)}[fields["norm"]]
    arrays = {
        "query": query,
        "keys": keys,
        "values": values,
        "scores": scores,
        "weights": weights,
        "output": output,
        "out": out,
    }
    arrays |= {"projected": output @ out, "added": added, "entered": normed(before) if fields["norm"] == "pre" else before}
    place: dict[str, Any] = {"kind": "cross", "layer": 0, "head": 0, "row": 0, "row_token": "a"}
    tokens = tuple(chr(ord("a") + key % 26) for key in range(n_keys))
    return Inside(
        **place, key_tokens=tokens, reasons=reasons, norm_epsilon=1e-5, residual_after=after, **streams, **arrays, **fields
    )


MODELS: dict[str, dict[str, Any]] = {
    "before": {},
    "after": {"norm": "post"},
    "between, without a mean": {"norm": "residual-post", "norm_kind": "rms"},
    "a bias, and nothing divided": {"scale": 1.0, "bias": np.array([0.25, -1.5, 0.0, 2.0, 0.125])},
    "capped": {"softcap": 2.0},
    "capped, with a bias and a mask": {
        "softcap": 2.0,
        "bias": np.linspace(-1, 1, 5),
        "reasons": np.array([0, 2, 0, 1, 0], np.uint8),
    },
    "all masked": {"reasons": np.full(5, 2, np.uint8), "weights": np.zeros(5)},
}


def addresses(inside: Inside) -> Iterator[str]:
    """Every number that a person can come to from the weights, the streams and what they are made of."""
    seen = set()
    ahead = [f"weight.{key + 1}" for key in range(len(inside.key_tokens))] + [f"residual_after.{i + 1}" for i in range(6)]
    ahead += [f"{name}.{i}" for name in ("projected", "output") for i in (1, 3)] + ["entered.2", "mask.2", "rest"]
    while ahead:
        address = ahead.pop()
        if address not in seen:
            seen.add(address)
            yield address
            found = explanations.explain(inside, address)
            ahead += [term.address for terms in (*found.rows, found.terms) for term in terms if term.address]


def number(term: Term) -> Decimal:
    return Decimal(term.figure.replace("−", "-"))


def rounded(value: Decimal | float, like: Term) -> Decimal:
    """Correctly, to the digits that a figure has."""
    places = Decimal(1).scaleb(-len(like.figure.partition(".")[2]))
    with localcontext(prec=50):
        return Decimal(value).quantize(places, ROUND_HALF_EVEN)


def of_terms(inside: Inside, found: Explanation) -> Decimal:
    """What the shown terms make, by hand."""
    *terms, result = found.terms
    with localcontext(prec=50):
        total = Decimal(0)
        for term in terms:
            value = number(term)
            total = {
                "": value,
                "e^(": value,
                "+": total + value,
                "−": total - value,
                "×": total * value,
                "÷": total / (value or 1),
            }[term.operator]
        if result.operator == ") =":
            return total.exp()
        is_capped = found.address.startswith("capped") or (found.address.startswith("score") and inside.bias is None)
        if inside.softcap and is_capped:
            return Decimal(inside.softcap * math.tanh(float(total) / inside.softcap))
        return total


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_what_is_shown_adds_up_or_is_said_to_be_rounded(changes: dict[str, Any]) -> None:
    n_sums = n_rounded = 0
    for seed in range(3):
        inside = made(seed, **changes)
        for address in addresses(inside):
            found = explanations.explain(inside, address)
            result = found.terms[-1]
            assert (found.address, result.operator in ("=", ") =")) == (address, True)
            n_rounded += found.is_rounded
            if found.is_rounded or len(found.terms) + len(found.rows) == 1:
                continue
            n_sums += 1
            if found.rows:
                assert sum(number(row[-1]) for row in found.rows) == number(result)
                assert all(rounded(number(a) * number(b), product) == number(product) for _, a, b, product in found.rows)
            else:
                assert rounded(of_terms(inside, found), result) == number(result)
    assert n_sums > 40 and n_rounded < n_sums


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_every_figure_is_correctly_rounded_and_has_three_to_six_digits(changes: dict[str, Any]) -> None:
    inside = made(1, **changes)
    for address in addresses(inside):
        found = explanations.explain(inside, address)
        for term in (*found.terms[:-1], *(term for row in found.rows for term in row[1:]), found.terms[-1]):
            where = address if term is found.terms[-1] else term.address
            if where is not None and math.isfinite(value := numbers.value_of(inside, where)):
                assert len(term.figure.partition(".")[2]) in DIGITS
                assert number(term) == rounded(value, term)


def test_rounded_is_said_only_where_no_number_of_digits_adds_up() -> None:
    n_rounded = 0
    for seed in range(12):
        inside = made(seed, n_keys=14)
        found = explanations.explain(inside, "sum")
        powers = numbers.exps(inside)
        adds_up = [
            sum(rounded(p, Term(f"0.{'0' * n}", "")) for p in powers) == rounded(powers.sum(), Term(f"0.{'0' * n}", ""))
            for n in DIGITS
        ]
        assert found.is_rounded == (not any(adds_up))
        assert len(found.terms[-1].figure.partition(".")[2]) == (3 if found.is_rounded else DIGITS[adds_up.index(True)])
        n_rounded += found.is_rounded
    assert 0 < n_rounded < 12


def test_of_many_keys_the_largest_stand_alone_and_the_rest_as_one() -> None:
    inside = made(4, n_keys=200)
    keys = numbers.shown_keys(inside, also=77)
    assert len(keys) == 12 and keys[-1] == 77
    assert set(keys[:-1]) == set(np.argsort(-inside.weights, kind="stable")[:11].tolist())
    total = explanations.explain(inside, "sum")
    assert [term.words for term in total.terms[-2:-1]] == ["188 more keys"] and len(total.terms) == 14
    output = explanations.explain(inside, "output.1")
    assert len(output.rows) == 13 and output.rows[-1][0].figure == "188 more"
    alone = {row[1].address for row in output.rows}
    rest = sum(numbers.parts(inside)[key, 0] for key in range(200) if f"weight.{key + 1}" not in alone)
    assert float(number(output.rows[-1][-1])) == pytest.approx(rest, abs=1e-3)


def test_what_an_edit_put_there_is_not_explained_by_the_softmax() -> None:
    forced = made(2, weights=np.array([0, 0, 1.0, 0, 0]))
    found = explanations.explain(forced, "weight.3")
    assert "edit" in found.words[0][1] and len(found.terms) == 1
    assert len(explanations.explain(made(2), "weight.3").terms) == 3


@given(value=st.floats(allow_nan=True, allow_infinity=True), digits=st.sampled_from(DIGITS))
def test_a_figure_is_a_number_with_a_true_minus(value: float, digits: int) -> None:
    text = number_words(value, digits)
    assert "-" not in text
    if math.isfinite(value):
        assert float(text.replace("−", "-")) == float(f"{value:.{digits}f}")
        assert not (text.startswith("−") and float(text[1:]) == 0)


NO_ADDRESSES = """. weight weight.0 weight.6 weight.1.1 weight.-1 weight.1e0 weight.٣ out.9.1 bias.1 scaled.1 querry.1"""


@pytest.mark.parametrize("address", ["", *NO_ADDRESSES.split(), "x" * 999, "weight." + "9" * 5000])
def test_an_address_of_nothing_is_refused(address: str) -> None:
    with pytest.raises(OptionError, match="no number of this row"):
        explanations.explain(made(0), address)


def test_what_a_reader_cannot_tell_has_no_address() -> None:
    inside = made(0)
    names = "kind layer head row row_token key_tokens query keys values reasons weights output"
    bare = Inside(**{name: getattr(inside, name) for name in names.split()})
    assert len(explanations.explain(bare, "weight.1").terms) == 1
    assert explanations.explain(bare, "dot.1").rows
    for address in ("score.1", "sum", "exp.1", "projected.1", "residual_after.1", "norm_mean", "entered.1"):
        with pytest.raises(OptionError):
            explanations.explain(bare, address)
