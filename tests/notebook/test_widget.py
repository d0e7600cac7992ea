"""A widget holds what is looked at, checks it, and gives a browser the numbers of what is chosen, and no others."""

import gzip
import json
import subprocess
import sys
import zlib
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.needs import needs


@pytest.fixture(scope="module")
def model() -> tv.Checkpoint:
    return tv.load_checkpoint("reverse", device="cpu")


class Browser:
    """What a widget sends, and what it is told, without a notebook."""

    def __init__(self, widget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.widget, self.heard = widget, []
        monkeypatch.setattr(widget, "send", lambda words, buffers=None: self.heard.append((words, buffers or [])))

    def ask(self, what: str, **more: Any) -> tuple[dict[str, Any], list[bytes]]:
        self.widget._handle_custom_msg({"id": "1", "ask": what, **more}, [])
        return self.heard[-1]


@pytest.fixture
def browser(model: tv.Checkpoint, monkeypatch: pytest.MonkeyPatch) -> Browser:
    return Browser(tv.widget(model, "hello"), monkeypatch)


@needs("anywidget")
def test_a_part_of_the_focus_is_set_and_all_of_it_is_observed(model: tv.Checkpoint) -> None:
    widget, seen = tv.widget(model, "hello", head="cross.2.3", step=1), []
    assert widget.focus == {"kind": "cross", "layer": 1, "head": 2, "step": 1, "cell": None}
    widget.observe(lambda change: seen.append(change["new"]), "focus")
    widget.focus = {"head": "mean", "cell": (4, None)}
    widget.focus = {"kind": "encoder", "layer": 0, "head": 3}
    assert seen == [
        {"kind": "cross", "layer": 1, "head": "mean", "step": 1, "cell": [4, None]},
        {"kind": "encoder", "layer": 0, "head": 3, "step": 1, "cell": None},
    ]
    assert widget.address == "encoder.1.4"


@needs("anywidget")
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"head": 4}, "no head cross.2.5"),
        ({"kind": "<b>"}, "is not"),
        ({"step": 6}, "0 to 5"),
        ({"layer": -1}, "from 0"),
        ({"cell": [0, 7]}, "0 to 6"),
        ({"cell": [None, None]}, "a row and a column"),
        ({"row": 3}, "row is not possible"),
    ],
)
def test_an_impossible_focus_is_answered_and_changes_nothing(model: tv.Checkpoint, wrong: Any, words: str) -> None:
    widget = tv.widget(model, "hello", head="cross.2.1")
    before = widget.focus
    with pytest.raises(tv.TransformerVizError, match=words):
        widget.focus = wrong
    assert widget.focus == before


@needs("anywidget")
def test_what_a_browser_says_of_another_run_is_passed_over(browser: Browser) -> None:
    browser.widget.set_state({"focus": {**browser.widget.focus, "step": 5}})
    assert browser.widget.focus["step"] == 5
    browser.widget.set_state({"focus": {**browser.widget.focus, "step": 6}})
    assert browser.widget.focus["step"] == 5


@needs("anywidget")
def test_the_run_comes_without_weights_and_a_head_with_those_of_the_trace(browser: Browser) -> None:
    words, (packed,) = browser.ask("run")
    run = json.loads(gzip.decompress(packed))
    assert words == {"id": "1", "run": 0} and run["text"] == "hello"
    assert not [name for name, kind in run["kinds"].items() if "weights" in kind]
    for head, expected in (
        ("2", browser.widget.trace.cross.weights[1, 1]),
        ("mean", browser.widget.trace.cross.head(1, "mean")),
    ):
        _, (weights, sentences) = browser.ask("head", run=0, head=f"cross.2.{head}")
        planes = np.frombuffer(zlib.decompress(weights, -zlib.MAX_WBITS), np.uint8).reshape(4, -1)
        assert np.array_equal(planes.T.copy().view("<f4").reshape(expected.shape), np.asarray(expected, "<f4"))
        assert len(json.loads(zlib.decompress(sentences, -zlib.MAX_WBITS))) == browser.widget.trace.n_steps


@needs("anywidget")
def test_another_text_is_decoded_with_the_same_options_and_told_to_all_views(
    model: tv.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Browser(tv.widget(model, "hello", max_length=3, head="decoder.1.2"), monkeypatch)
    browser.ask("decode", text="banana")
    (told, (packed,)), (answer, _) = browser.heard
    assert told == {"run": 1} and answer == {"id": "1"}
    assert json.loads(gzip.decompress(packed))["text"] == browser.widget.trace.source == "banana"
    assert browser.widget.trace.text == tv.decode(model, "banana", max_length=3).text
    assert browser.widget.address == "decoder.1.2"
    assert browser.ask("head", run=0, head="cross.1.1")[0]["error"]


@needs("anywidget")
def test_what_cannot_be_read_or_asked_is_answered_in_words(browser: Browser, model: tv.Checkpoint) -> None:
    assert browser.ask("decode", text="")[0]["error"]
    assert "2,000" in browser.ask("decode", text="a" * 2001)[0]["error"]
    assert browser.ask("head", run=0, head="cross.9.9")[0]["error"]
    assert browser.ask("import os")[0]["error"]
    assert browser.widget.trace.source == "hello"
    with pytest.raises(tv.TransformerVizError, match=r"tv\.widget"):
        tv.widget(tv.decode(model, "ab")).decode("cd")


@needs("anywidget")
def test_what_is_synced_has_neither_a_run_nor_plotly(browser: Browser) -> None:
    state = {name: value for name, value in browser.widget.get_state().items() if isinstance(value, str | dict)}
    assert len(json.dumps({**state, "_esm": "", "_css": ""})) < 2000
    assert len(state["_esm"]) < 200_000 and "plotly.js v" not in state["_esm"]
    assert b"plotly.js" in gzip.decompress(browser.ask("plotly")[1][0])[:100]


@needs("anywidget")
def test_a_widget_needs_a_run_or_a_model_with_a_text(model: tv.Checkpoint) -> None:
    with pytest.raises(tv.TransformerVizError, match="text is missing"):
        tv.widget(model)
    with pytest.raises(tv.TransformerVizError, match=r"tv\.load_model"):
        tv.widget("reverse", "hello")  # ty: ignore[invalid-argument-type]
    with pytest.raises(tv.TransformerVizError, match="takes no text"):
        tv.widget(tv.decode(model, "ab"), "cd")


def test_without_anywidget_the_error_says_what_to_install_and_the_trace_keeps_its_page() -> None:
    code = """if True:
        import sys
        sys.modules["anywidget"] = None
        import transformer_viz as tv
        trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "ab")
        assert "<iframe" in trace._repr_html_()
        try:
            tv.widget(trace)
        except tv.TransformerVizError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install anywidget" in done.stdout


@needs("anywidget")
def test_a_widget_in_chinese_is_chinese_later_too(model: tv.Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Browser(tv.widget(model, "hello", language="zh"), monkeypatch)
    assert '"▶ Play": "▶ 播放"' in browser.widget._esm and "逐步播放器" in browser.widget._esm
    _, (packed,) = browser.ask("run")
    assert json.loads(gzip.decompress(packed))["kinds"]["cross"]["title"] == "交叉注意力"
    _, sentences, *_ = browser.ask("head", run=0, head="cross.1.1")[1]
    assert json.loads(zlib.decompress(sentences, -zlib.MAX_WBITS))[0][0] == ["strong", "第 1 步，共 6 步："]
    assert "▶ 播放" not in tv.widget(model, "hello")._esm
