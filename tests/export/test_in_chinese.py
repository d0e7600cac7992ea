"""Exported pages in Chinese: whole pages without scripts, what a page's program is given, and that English stays as it is."""

import html
import json
import re
from typing import Any

import pytest

import transformer_viz as tv
from tests.surveys.made import survey
from transformer_viz import export
from transformer_viz.errors import OptionError
from transformer_viz.language import speaking
from transformer_viz.live.page import live_html

TEXT = "qqxy"
ALLOWED = {"Transformer", "Viz", "start", "end", "reverse", "softmax", "exp", "logit"}
"""Runs of Latin letters that no language translates: names, tokens and functions."""


@pytest.fixture(scope="module")
def model() -> tv.Checkpoint:
    return tv.load_checkpoint("reverse", device="cpu")


def left(page: str, *texts: str) -> set[str]:
    """Runs of Latin letters in the text and the labels of a page, of whose program nothing is looked at."""
    bare = re.sub(r"<(script|style|head|code|noscript)\b.*?</\1>", " ", page, flags=re.DOTALL)
    said = " ".join([*re.findall(r'(?:aria-label|title)="([^"]*)"', bare), re.sub(r"<[^<>]*>", " ", bare)])
    said = re.sub("|".join(map(re.escape, texts)), " ", re.sub(r"&\w+;", " ", said)) if texts else said
    return set(re.findall(r"[A-Za-z][A-Za-z-]+", said)) - ALLOWED


def data_of(page: str) -> dict[str, Any]:
    """What the program of a page is given."""
    return json.loads(re.findall(r'id="data">(.+?)</script>', page)[0])


def test_a_page_has_the_language_that_is_asked_for_or_that_of_who_makes_it(model: tv.Checkpoint) -> None:
    trace = tv.decode(model, TEXT)
    english, chinese = export.html(trace), export.html(trace, language="zh")
    assert '<html lang="en"' in english and "words" not in data_of(english)
    assert '<html lang="zh"' in chinese and data_of(chinese)["words"]["▶ Play"] == "▶ 播放"
    assert export.html(trace, language="en") == english
    with speaking("zh"):
        assert export.html(trace) == chinese
    with pytest.raises(OptionError, match="language 'xx' is not known; choose one of en, zh"):
        export.html(trace, language="xx")


def test_a_figure_a_frame_and_a_live_page_have_it_too(model: tv.Checkpoint) -> None:
    trace = tv.decode(model, TEXT)
    page = export.figure_html(tv.figures.mosaic(trace, "cross"), language="zh")
    assert '<html lang="zh"' in page and "本页找不到 plotly.js，因此画不出图。" in data_of(page)["words"].values()
    frame = export.frame(trace, language="zh")
    assert frame.isascii() and 'title="Transformer Viz：一次运行，一步一步看"' in html.unescape(frame)
    live = data_of(live_html(model, TEXT, language="zh", plotlyjs=False))
    assert live["about"] == "reverse：把文本倒着写出来；没有人告诉它怎么做。"
    # What the engine says comes from a thread of its own.
    assert live["live"]["words"]["Every token is banned; leave at least one."] == "所有词元都被禁止；请至少留下一个。"
    assert live["live"]["model"]["reading"]["unit"] == "字符"
    assert data_of(live_html(model, TEXT, plotlyjs=False))["live"]["words"] == {}


def test_the_numbers_inside_a_head_are_told_in_chinese(model: tv.Checkpoint) -> None:
    trace = tv.decode(model, TEXT)
    trace = trace.with_inside(tv.inspect_head(model, trace, "cross.2.1", query=1))
    page = export.inside_html(trace, language="zh")
    assert "残差流" in page and left(page, TEXT, TEXT[::-1]) == set()
    assert export.inside_html(trace, language="en") == export.inside_html(trace)


def test_a_survey_is_told_in_chinese() -> None:
    made = survey()
    page = export.survey_html(made, plotlyjs=False, language="zh")
    names = {made.model.name, made.model.variant, made.texts.source, *made.options, *map(str, made.options.values())}
    names |= {text for entry in made.texts.failed for text in (entry.text, entry.why)} | {of.title for of in made.statistics}
    # Texts are numbered, and their blanks are drawn.
    known = sorted(filter(None, {*names, *(name.replace(" ", "␣").replace("\t", "⇥") for name in names)}), key=len)[::-1]
    assert left(page, *known) <= {"text", "txet"}
    assert export.survey_html(made, plotlyjs=False, language="en") == export.survey_html(made, plotlyjs=False)


def test_a_language_that_there_is_not_is_refused_before_anything_is_drawn(model: tv.Checkpoint) -> None:
    with pytest.raises(OptionError, match="choose one of en, zh"):
        export.picture(tv.decode(model, TEXT), "svg", language="xx")
