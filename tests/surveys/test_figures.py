"""The figures and the page of a survey: each number stands where it belongs, and nothing in a survey acts as markup."""

from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from tests.surveys.made import STATISTICS, changed, survey
from transformer_viz import export, figures
from transformer_viz.addresses import HeadAddress
from transformer_viz.errors import OptionError
from transformer_viz.figures.theme import Style
from transformer_viz.surveys.columns import compare_surveys, values
from transformer_viz.surveys.result import HeadStatistic, role_share

MADE = survey()


def row_of(layer: int, head: int, name: str) -> HeadStatistic:
    """Of cross-attention."""
    row = MADE.at(HeadAddress("cross", layer, head), name)
    assert row is not None
    return row


def words_on(figure) -> dict[tuple[int, int], list[str]]:
    found: dict[tuple[int, int], list[str]] = {}
    for line in (trace for trace in figure.data if trace.type == "scatter" and trace.mode == "text"):
        for x, y, text in zip(line.x, line.y, line.text, strict=True):
            found.setdefault((round(y), x), []).append(text)
    return found


def test_every_head_has_its_number_its_role_and_its_hover():
    figure, numbers = figures.survey_heads(MADE, "cross", "mass", (1, 2)), values(MADE, "cross", "mass")
    heads = figure.data[0]
    np.testing.assert_allclose(heads.z, numbers, rtol=1e-6)
    axis = figure.layout.coloraxis
    assert (axis.cmin, axis.cmax) == (numbers.min(), numbers.max())
    assert [*axis.colorbar.ticktext] == [
        f"{n:.2g}" for n in (numbers.min(), (numbers.min() + numbers.max()) / 2, numbers.max())
    ]
    for (row, column), texts in words_on(figure).items():
        (role, _), *_ = MADE.roles(HeadAddress("cross", row, column))
        assert texts == [f"{numbers[row, column]:.3f}", role]
        assert f"<b>layer {row + 1} head {column + 1}</b>" in heads.text[row][column]
        assert f"<b>{numbers[row, column]:.3f}</b>, 95 %: " in heads.text[row][column]
    assert len(words_on(figure)) == len(figure.layout.meta["said"]) == 6


def test_heads_without_the_number_are_blank_and_equal_ones_have_the_lowest_colour():
    blank = figures.survey_heads(MADE, "encoder", "mass")
    assert np.isnan(np.array(blank.data[0].z, dtype=float)).all() and "no text has it" in blank.data[0].text[0][0]
    alike = [row for row in MADE.heads if row.kind != "encoder" or not row.statistic.startswith("role ")]
    alike += [role_share(place, "mixed", 1000, 1000) for place in MADE.places if place.kind == "encoder"]
    axis = figures.survey_heads(replace(MADE, heads=tuple(alike)), "encoder", "role mirror").layout.coloraxis
    assert (axis.cmin, axis.cmax) == (0, 1)


def test_a_difference_has_a_sign_and_one_within_its_interval_a_hatch():
    other = MADE
    for head, by in ((0, 0.2), (1, -0.1)):
        other = changed(other, HeadAddress("cross", 0, head), "mass", mean=row_of(0, head, "mass").mean + by, min=-1.0, max=2.0)
    figure = figures.survey_difference(compare_surveys(MADE, other, "mass"), "cross")
    clear, unclear, hatch = figure.data[:3]
    assert np.array(clear.z)[0, :2] == pytest.approx([0.2, -0.1], abs=1e-6)
    assert np.isnan(np.array(clear.z).ravel()[2:]).all() and np.isfinite(np.array(unclear.z).ravel()[2:]).all()
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == pytest.approx((-0.2, 0.2))
    assert hatch.fillpattern.shape == "/" and words_on(figure) == {(0, 0): ["+0.200"], (0, 1): ["−0.100"]}
    assert "no difference is seen" in unclear.text[1][1] and "no difference" not in clear.text[0][0]


def test_a_histogram_has_all_texts_its_mean_and_that_of_uniform_attention():
    found = row_of(0, 1, "mass")
    figure = figures.survey_distribution(MADE, "cross.1.2", "mass")
    named = {trace.name.split(" ")[0]: trace for trace in figure.data if trace.name}
    assert {*named["mean"].x} == {found.mean} and {*named["uniform"].x} == {found.uniform}
    assert f"mean {found.mean:.3f}, 95 %: {found.interval[0]:.3f} to {found.interval[1]:.3f}" == named["mean"].name
    bins = figure.data[-1]
    assert sum(bins.y) == pytest.approx(1) and [*bins.y] == pytest.approx([n / 1000 for n in found.counts if n])
    # Bins of other widths are equally wide, and values stand in their bin: edges 0, 1, 4, 16 at the places 0, 1, 2, 3.
    found, figure = row_of(0, 1, "distance"), figures.survey_distribution(MADE, "cross.1.2", "distance")
    mean = next(trace for trace in figure.data if (trace.name or "").startswith("mean"))
    assert 4 < found.mean < 16 and mean.x[0] == pytest.approx(2 + (found.mean - 4) / 12)
    assert figure.layout.xaxis.ticktext == ("0", "1", "4", "16")
    with pytest.raises(OptionError, match="No text has 'mass' of layer 1 head 1"):
        figures.survey_distribution(MADE, "encoder.1.1", "mass")


def test_agreement_is_the_matrix_with_every_head_named():
    figure = figures.survey_agreement(MADE, "decoder")
    np.testing.assert_allclose(figure.data[0].z, np.array(MADE.agreement["decoder"], dtype=float), rtol=1e-6)
    assert [*figure.layout.xaxis.ticktext] == ["L1 H1", "L1 H2", "L1 H3", "L2 H1", "L2 H2", "L2 H3"]
    with pytest.raises(OptionError, match="were not compared"):
        figures.survey_agreement(replace(MADE, agreement={}), "decoder")


def test_lengths_and_calibration_are_shares_of_counts():
    outputs = MADE.outputs
    assert outputs is not None
    lines = {trace.name: trace for trace in figures.survey_lengths(outputs).data}
    assert [*lines["whole output right"].x] == [4, 6, 9]
    assert [*lines["whole output right"].y] == [each.n_exact / each.n_known for each in outputs.by_length]
    assert [*lines["tokens right at their place"].y] == [each.n_right / each.n_tokens for each in outputs.by_length]
    points = next(
        trace for trace in figures.survey_calibration(outputs.confidence).data if "tokens that are" in (trace.name or "")
    )
    known = outputs.confidence
    assert [*points.x] == pytest.approx([p / n for p, n in zip(known.sum_p, known.n_judged, strict=True)])
    assert [*points.y] == pytest.approx([right / n for right, n in zip(known.n_right, known.n_judged, strict=True)])


def test_what_a_survey_says_is_no_markup():
    hostile = tuple(replace(each, title="<b>$x$</b>") for each in STATISTICS)
    made = replace(MADE, statistics=hostile)
    for figure in (figures.survey_heads(made, "cross", "mass"), figures.survey_distribution(made, "cross.1.1", "mass")):
        said = figure.to_json().replace("\\u003c", "<")
        assert "<b>$" not in said and "&lt;b&gt;&#36;x&#36;" in said


def test_it_holds_every_number_of_every_head_and_asks_for_nothing():
    page = export.survey_html(MADE, plotlyjs=False)
    assert page == export.survey_html(survey(), plotlyjs=False) != export.survey_html(survey(1), plotlyjs=False)
    for row in MADE.heads:
        ends = "".join(f"<td>{number:.3f}</td>" for number in (row.mean, *row.interval, row.uniform) if number is not None)
        assert ends in page
    for texts in MADE.examples:
        for each in (*texts.highest, *texts.typical, *texts.unusual):
            assert f'>{each.value:.3f}</th><td class="text">{each.text.replace(" ", "␣")}</td>' in page
    assert "http://" not in page and "https://" not in page and "default-src 'none'" in unescape(page)


def test_texts_are_text():
    hostile = "</script><script>alert(1)</script>{{data}}<img src=x>"
    examples = tuple(replace(of, highest=tuple(replace(each, text=hostile) for each in of.highest)) for of in MADE.examples)
    page = export.survey_html(replace(MADE, examples=examples, model=replace(MADE.model, name="<b>")), plotlyjs=False)
    assert "<script>alert" not in page and "<img" not in page and "<title>Survey: &lt;b&gt;</title>" in page
    assert hostile.replace(" ", "␣") in unescape(page)


EMPTY = {"kinds": {}, "heads": (), "examples": (), "agreement": {}}


@pytest.mark.parametrize("changes", [{"outputs": None, "verdict": None, "agreement": {}}, EMPTY])
def test_parts_that_a_survey_lacks_are_left_out(changes):
    page = export.survey_html(replace(MADE, **changes), plotlyjs=False, style=Style("dark", large=True))
    assert "undefined" not in page and "Do heads look" not in page
    with pytest.raises(OptionError, match="theme 'auto' is not possible for a figure; choose one of light, dark"):
        export.survey_html(MADE, style=Style("auto"))  # ty: ignore
