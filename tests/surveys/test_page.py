"""report.html: the numbers of the survey, text that stays text, and the same bytes each time."""

from dataclasses import replace
from html import unescape

import pytest

from tests.surveys.made import survey
from transformer_viz import export
from transformer_viz.errors import OptionError
from transformer_viz.figures.theme import Style

MADE = survey()


def test_it_holds_every_number_of_every_head_and_asks_for_nothing():
    page = export.survey_html(MADE, plotlyjs=False)
    for row in MADE.heads:
        ends = "".join(f"<td>{number:.3f}</td>" for number in (row.mean, *row.interval, row.uniform) if number is not None)
        assert ends in page
    for texts in MADE.examples:
        for each in (*texts.highest, *texts.typical, *texts.unusual):
            assert f'>{each.value:.3f}</th><td class="text">{each.text.replace(" ", "␣")}</td>' in page
    assert "http://" not in page and "https://" not in page
    assert "default-src 'none'" in unescape(page)


def test_the_same_survey_is_the_same_page():
    page = export.survey_html(MADE, plotlyjs=False)
    assert page == export.survey_html(survey(), plotlyjs=False) != export.survey_html(survey(1), plotlyjs=False)


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


def test_an_impossible_theme_is_refused():
    with pytest.raises(OptionError, match="theme 'auto' is not possible for a figure; choose one of light, dark"):
        export.survey_html(MADE, style=Style("auto"))  # ty: ignore
