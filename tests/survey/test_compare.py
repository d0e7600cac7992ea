"""Two surveys: differences, their intervals, and which head changed most."""

from dataclasses import replace

import pytest

from tests.survey.made import survey
from transformer_viz.analysis.intervals import difference, wilson
from transformer_viz.analysis.survey.compare import compare_surveys
from transformer_viz.analysis.survey.words import changed
from transformer_viz.errors import OptionError

MADE = survey()


def moved(by: float):
    """The same survey, one head's mass moved."""
    heads = list(MADE.heads)
    place = next(i for i, head in enumerate(heads) if (head.kind, head.layer, head.head) == ("cross", 1, 0))
    found = heads[place].statistics["mass"]
    assert found is not None
    other = replace(found, mean=found.mean + by, low=found.low + by, high=found.high + by)
    heads[place] = replace(heads[place], statistics={**heads[place].statistics, "mass": other})
    return replace(MADE, heads=tuple(heads)), found


def test_the_head_that_was_moved_changed_most():
    other, before = moved(0.1)
    found = compare_surveys(MADE, other, "mass")
    largest = found.largest
    assert largest is not None and (largest.kind, largest.layer, largest.head) == ("cross", 1, 0)
    assert [*found.clear()] == [largest] and len(found.heads) == 6
    assert largest.difference == pytest.approx(0.1, abs=1e-12)
    half = 1.96 * (2 * before.sd**2 / before.n) ** 0.5
    assert (largest.low, largest.high) == pytest.approx((0.1 - half, 0.1 + half), abs=1e-9)
    assert compare_surveys(other, MADE, "mass").largest == replace(
        largest, a=largest.b, b=largest.a, low=-largest.high, high=-largest.low
    )
    said = changed(found, "one", "two")
    assert "changed most in layer 2 head 1 of cross-attention" in said and "+0.100" in said and "1 of 6 heads" in said


def test_what_is_within_its_interval_is_no_difference():
    other, _ = moved(0.001)
    found = compare_surveys(MADE, other, "mass")
    assert found.largest is None and not [*found.clear()]
    assert changed(found, "one", "two").startswith("From one to two no head's weight on the right key differs by more")


def test_shares_have_the_interval_of_the_paper():
    """Newcombe 1998, table II: 56/70 − 48/80, method 10."""
    a, b = wilson(48, 80), wilson(56, 70)
    assert difference(48 / 80, a, 56 / 70, b) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_a_role_that_one_of_both_lacks_has_the_share_0():
    heads = tuple(replace(head, roles={"broad": head.n_texts}) for head in MADE.heads)
    found = compare_surveys(MADE, replace(MADE, heads=heads), "role broad")
    assert {each.difference for each in found.heads} == {1.0} and len([*found.clear()]) == len(MADE.heads)


def test_models_of_other_sizes_are_refused():
    with pytest.raises(OptionError, match="reverse and reverse differ in their numbers of layers or heads"):
        compare_surveys(MADE, survey(n_heads=2), "mass")
    with pytest.raises(OptionError, match="'nope' is no number of this survey"):
        compare_surveys(MADE, MADE, "nope")
