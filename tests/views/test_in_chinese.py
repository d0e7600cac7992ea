"""Pages in Chinese: no English is left on them, links keep the language, and two visitors have one each."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.inside import tree
from tests.views import viewer
from transformer_viz.language import languages
from transformer_viz.views.state import visit_language

NAMES = """
Transformer Viz English Hugging Face Spearman Wilson BLEU CSV PDF PNG SVG Parquet JSON CUDA MPS CPU GPU MB GB TRANSFORMER_VIZ_\\w+
Vaswani Abnar Zuidema Chefer Ferrando Kobayashi Meng Guo Papineni DeYoung Och Ney Chen Jiang Clark et al Markdown logits? softmax
nostalgebraist Belrose He Wang Sukhbaatar Ba Zhang Sennrich Bahdanau Xiong Srivastava Szegedy Michel Voita Jain Wallace
ALTI rollout NaN dropout Dropout GELU ReLU gelu relu adamw? sgd cosine linear constant inverse_sqrt pre post residual none output all
source embeddings? both word position deleted zero mean uniform cookie start end pad unk float16 float32 float64 auto config json
learned sinusoidal xavier_uniform torch_default where True False
"""
"""Words that no language translates: proper names, units, formats, and values that are also typed in a link or in Python."""
_NAMES = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(NAMES.split())})(?![A-Za-z])")
_UNSEEN = re.compile(r"<(style|svg|pre|code)\b.*?</\1>|<(?:start|end|pad|unk)>", re.DOTALL)
_ATTRIBUTES, _TAGS = (
    re.compile(r'(?:aria-label|title|alt|placeholder|aria-description|data-means)="([^"]*)"'),
    re.compile(r"<[^<>]*>"),
)
_NOT_WORDS = re.compile(
    r"`[^`]*`|:material/\w+:|:small|&\w+;|https?://\S+|\bp\b|\blog\b|[AB]′?|\b[LH]\d+|\bd_\w+|W_[OQKV]|QKᵀ|--[\w-]+|tv\.\w+"
    r"|\b[\w-]+\.(?:json|npz|csv|py)\b|\([\d,. ]*\)|\b[ekns]\b|%\{\{?[^}]*\}?\}|\bpython -m [^\n]*|\bmax\b|f\(x\)|norm\(x"
)
TEXT = "qqxy"
"""What the pages read: no word of any language."""


def test_chinese_is_there() -> None:
    assert {*languages()} <= {*visit_language.NAMES}


def left(words: str, known: re.Pattern[str]) -> list[str]:
    """Runs of Latin letters in words of a page that are neither names nor a part of what the run itself has."""
    seen = _UNSEEN.sub(" ", words)
    said = " ".join([*_ATTRIBUTES.findall(seen), _TAGS.sub(" ", seen)]).replace("\\", "")
    bare = _NAMES.sub(" ", _NOT_WORDS.sub(" ", known.sub(" ", said)))
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
    for frame in at.dataframe:
        yield " ".join(map(str, frame.value.columns))
        yield frame.proto.columns


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
    known = re.compile("|".join(map(re.escape, sorted({"reverse-small", "reverse", *map(str, query.values())}, key=len)[::-1])))
    found = {word: text[:160] for text in texts(at) for word in left(text, known)}
    assert found == {}


def test_a_run_is_told_in_chinese(start, everything) -> None:
    at = start(None, lang="zh", text=TEXT)
    content = viewer.content(at)
    said = json.dumps([content["pieces"], content["labels"], content["best"]], ensure_ascii=False)
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


def test_two_visitors_have_a_language_each_and_the_same_runs(start, everything) -> None:
    chinese, english = start(None, lang="zh", text=TEXT), start(None, text=TEXT)
    again = start(None, lang="zh", text=TEXT)
    said = [viewer.content(at)["pieces"] for at in (chinese, english, again)]
    assert said[0] == said[2] != said[1]
    assert any("looks" in text for _, text in said[1]) and not any("looks" in text for _, text in said[0])
