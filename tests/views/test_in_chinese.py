"""Pages in Chinese: no English is left on them, links keep the language, and two visitors have one each."""

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.inside import tree
from tests.views import viewer
from tests.views.drawn import charts
from transformer_viz.language import languages
from transformer_viz.views.state import visit_language
from transformer_viz.views.state.lesson_place import lessons

NAMES = """
Transformer Viz English Hugging Face Spearman Wilson BLEU CSV PDF PNG SVG Parquet JSON CUDA MPS CPU GPU MB GB Xavier
Vaswani Abnar Zuidema Chefer Ferrando Kobayashi Meng Guo Papineni DeYoung Och Ney Chen Etienne et al nostalgebraist pandas
torch-reference shared-norm bias-free start pad output all norm torch nn
ALTI rollout NaN dropout Dropout GELU ReLU tanh exp logits? softmax vierzehn auto cpu cookie npz json config float16
float32 float64 Gemma3ForCausalLM gemma3\\W*_text
"""
"""Words that no language translates: proper names, units, formats, and what is typed in Python or on the command line."""
NOT_TRANSLATED = (
    r"python -m [^\n]*|trainings: .* again\.|Source\\?: Xiong.*|TRANSFORMER_VIZ_\w+|\d+ .?s\b|kind:query.*?= ?5|cross:off"
    r"|cross:3-5.*3=5|(?:- )?decoder, layers? \d[^\n]*"
    r"|\b(?:step|loss|token_accuracy|sequence_accuracy|learning_rate|attention_entropy|held_out|mass_0_1)\b"
)
"""What stays English: messages of files, the sources of variants, edits as text, and the columns of a history."""
_NAMES = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(NAMES.split())})(?![A-Za-z])")
_UNSEEN = re.compile(r"<(style|svg|pre|code)\b.*?</\1>", re.DOTALL)
_ATTRIBUTES = re.compile(r'(?:aria-label|title|alt|placeholder|aria-description|data-means)="([^"]*)"')
_TAGS = re.compile(r"<[^<>]*>")
_NOT_WORDS = re.compile(
    r"`[^`]*`|:material/\w+:|:small|:\w+-badge|&\w+;|https?://\S+|[AB]′?|\b[LH]\d+|\bd_\w+|\bW_[OQKV]|QKᵀ|--[\w-]+|tv\.\w+"
    r"|\b[\w-]+\.(?:json|npz|csv|py)\b|\b[a-z]\b|\blog p\b|f\(x\)|norm\(|\.npz"
    r"|<(?:start|end|pad|unk)>|\b(?:pre|post|residual-post)\b"
)
_NAME = re.compile(r"-?[a-z0-9]+(?:[-_][a-z0-9]+)*(?:, [a-z0-9-]+)?")
"""A whole option that is a name: of a task, a variant, a setting, as it is typed."""
READ = (
    *("reverse-small", "reversethis", "sihtesrever", "reverse", "aaaaaaaa", "Mississippi␣2026!", "hello"),
    *("never␣odd␣or␣even", "abcdefghijklmnopqrstuvwxyz012345", "␣&␣*you*", "pre-norm", "first", "ho8T", "held-out, seed 0"),
    *("seed 0", "summary.json", "entropy, of the largest"),
)
"""Texts, models and trainings that the pages of this test have, and what a survey's file says."""
TEXT = "qqxy"
"""What the pages read: no word of any language."""


def test_chinese_is_there() -> None:
    assert {*languages()} <= {*visit_language.NAMES}


def left(words: str, known: re.Pattern[str]) -> list[str]:
    """Runs of Latin letters in words of a page that are neither names nor a part of what the run itself has."""
    seen = _UNSEEN.sub(" ", words.replace("\\", ""))
    if _NAME.fullmatch(seen):
        return []
    said = " ".join([*_ATTRIBUTES.findall(seen), _TAGS.sub(" ", seen)])
    said = re.sub(NOT_TRANSLATED, " ", known.sub(" ", said))
    bare = _NOT_WORDS.sub(" ", _NAMES.sub(" ", said))
    return re.findall(r"[A-Za-z][a-z]+(?: [a-z]+)*", bare)


def texts(at: AppTest) -> Iterator[str]:
    """All that is to be read on a page: labels, options, help, Markdown, HTML, tables, and what components are sent."""
    for node in _nodes(tree(at)):
        proto = getattr(node, "proto", None)
        if proto is None or type(proto).__name__ in ("IFrame", "Skeleton"):
            continue
        for name in ("label", "help", "placeholder", "body", "text", "title", "alt"):
            if isinstance(said := getattr(proto, name, ""), str) and said:
                yield said
        for option in getattr(proto, "options", ()):
            yield option if isinstance(option, str) else getattr(option, "content", "")
    for chart in charts(at):
        yield from _of_figure([chart.figure, chart.words], "text")
    for frame in at.dataframe:
        titles = json.loads(frame.proto.columns or "{}")
        for title in map(str, frame.value.columns):
            yield titles.get(title, {}).get("label") or title
            yield titles.get(title, {}).get("help") or ""


def _of_figure(part: Any, name: str = "") -> Iterator[str]:
    """Titles, names, hovers, annotations of a chart, without what a run wrote: in a search that is bold or was kept last."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from _of_figure(value, key)
    elif isinstance(part, list):
        for value in part:
            yield from _of_figure(value, name)
    elif isinstance(part, str) and name in ("title", "name", "text", "hovertext", "hovertemplate"):
        yield unescape(re.sub(r"%\{.*?\}|<b>.*?</b>|最后保留的：[^，]*", " ", part))


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in getattr(node, "children", {}).values():
        yield from _nodes(child)


PAGES = [
    (None, {}),
    (None, {"explore_tab": "Inside"}),
    (None, {"explore_tab": "What if"}),
    (None, {"explore_tab": "Heads"}),
    (None, {"explore_tab": "Heads", "heads_part": "On trial"}),
    (None, {"explore_tab": "Masks"}),
    (None, {"explore_tab": "Export"}),
    (None, {"decoding": "beam", "beam": "2"}),
    (None, {"measure": "cause"}),
    (None, {"measure": "value"}),
    (None, {"hide_answer": "true"}),
    (None, {"checkpoint": "a trace file …"}),
    ("masks", {}),
    ("masks", {"masks_tab": "Scores to weights"}),
    ("masks", {"masks_tab": "Change and run again", "edits": "cross.1.1:zero"}),
    ("masks", {"masks_tab": "Mistakes", "mistake": "No causal mask"}),
    ("masks", {"masks_tab": "Certificate", "certificate": "true"}),
    ("masks", {"masks_tab": "Loss"}),
    ("masks", {"masks_tab": "From a configuration"}),
    ("compare", {"b_text": "zzxq"}),
    ("train", {"form": "true"}),
    ("train", {"learned": "true", "checkpoint": "reverse-small"}),
    ("survey", {}),
    ("survey", {"survey_tab": "Outputs"}),
    ("survey", {"survey_tab": "On trial"}),
    ("survey", {"survey_tab": "Agreement"}),
    ("survey", {"survey_tab": "How it was made"}),
    ("learn", {}),
]


@pytest.mark.parametrize(("page", "query"), PAGES, ids=lambda value: value if isinstance(value, str) else None)
def test_no_english_is_left(start, everything, page, query) -> None:
    at = start(page, lang="zh", all_controls="true", **query)
    assert not at.exception
    known = re.compile("|".join(map(re.escape, sorted({*READ, *map(str, query.values())}, key=len)[::-1])))
    found = {word: text[:160] for text in texts(at) for word in left(text, known)}
    assert found == {}


def test_a_run_is_told_in_chinese(start, everything) -> None:
    at = start(None, lang="zh", text=TEXT)
    content = viewer.content(at)
    of_kinds = [str(kind[name]) for kind in content["kinds"].values() for name in ("title", "legend", "names")]
    pieces = [text for style, text in content["pieces"] if style != "code"]
    said = " ".join([*pieces, *content["labels"].values(), content["best"], *of_kinds, *content["terms"]])
    assert "第 1 步" in said and "看" in said
    assert left(said, re.compile(TEXT)) == []


def test_a_link_keeps_the_language_and_english_is_left_out(start, everything) -> None:
    assert viewer.link(start(None, lang="zh", text=TEXT))["lang"] == "zh"
    assert "lang" not in viewer.link(start(None, text=TEXT))


@pytest.mark.parametrize(
    ("query", "cookies", "browser", "language"),
    [
        ({}, {}, None, "en"),
        ({}, {}, "zh-CN", "zh"),
        ({}, {}, "de-DE", "en"),
        ({}, {visit_language.COOKIE: "en"}, "zh-CN", "en"),
        ({}, {visit_language.COOKIE: "zh"}, "en-US", "zh"),
        ({}, {visit_language.COOKIE: "../zh"}, "en-US", "en"),
        ({"lesson": "zh.map.1"}, {visit_language.COOKIE: "en"}, "en-US", "zh"),
        ({"lesson": "map.1"}, {}, "zh-CN", "en"),
        ({"lesson": "map.1", "lang": "zh"}, {}, "en-US", "zh"),
        ({"lang": "en"}, {visit_language.COOKIE: "zh"}, "zh-CN", "en"),
        ({"lang": "xx"}, {}, "zh-CN", "zh"),
    ],
)
def test_the_language_of_a_visit(start, monkeypatch, query, cookies, browser, language) -> None:
    """The address comes first, then its lesson, what was chosen here before, and the browser's own."""
    monkeypatch.setattr(type(st.context), "cookies", cookies)
    monkeypatch.setattr(type(st.context), "locale", browser)
    assert start("learn", **query).session_state["language"] == language


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ({"lesson": "map.2"}, "en"),
        ({"lesson": "map.2", "lang": "zh"}, "zh"),
        ({"lesson": "zh.map.2"}, "zh"),
        ({"lesson": "zh.map.2", "lang": "en"}, "zh"),
        ({"lesson": "en.map.2", "lang": "zh"}, "en"),
    ],
)
def test_a_lesson_is_in_the_language_of_the_page_unless_its_link_names_one(start, query, language) -> None:
    at = start(None, **query)
    titles = {code: lesson.steps[1].title for code in ("en", "zh") for lesson in lessons(code)[0] if lesson.name == "map"}
    said = "".join(one.proto.body for one in at.get("html"))
    assert [code for code, title in titles.items() if f">{title}</h2>" in said] == [language]


def test_two_visitors_have_a_language_each_and_the_same_runs(start, everything) -> None:
    chinese, english = start(None, lang="zh", text=TEXT), start(None, text=TEXT)
    again = start(None, lang="zh", text=TEXT)
    said = [viewer.content(at)["pieces"] for at in (chinese, english, again)]
    assert said[0] == said[2] != said[1]
    assert any("looks" in text for _, text in said[1]) and not any("looks" in text for _, text in said[0])
