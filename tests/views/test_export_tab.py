"""The tab Export: what it offers is the run, and files that take a while are made when they are asked for."""

import csv
import io

import pytest
from streamlit.testing.v1 import AppTest

import transformer_viz as tv
from tests.views.drawn import Start
from tests.views.viewer import enter


def export(start: Start, chosen: str, **query: str) -> AppTest:
    return start(text="abc", explore_tab="Export", export_format=chosen, **query)


def downloads(at: AppTest) -> list[str]:
    return [button.proto.label.replace("\\", "") for button in at.get("download_button")]


def test_the_code_knows_what_is_hidden(start):
    assert "with_answer=False" in export(start, "html", code_of_tab="true", hide_answer="true").code[0].value


def test_a_page_is_made_when_it_is_asked_for(start):
    at = export(start, "html", step="2")
    assert not downloads(at)
    at.button(key="export-prepare").click().run()
    assert downloads(at)[0].startswith("Download attention-abc-reverse.html (")
    # Another text has not been asked for.
    enter(at, "abcd")
    assert not downloads(at)


def test_where_no_picture_can_be_made_it_says_what_to_install(start, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    at = export(start, "pdf")
    at.button(key="export-prepare").click().run()
    assert "pip install kaleido" in at.error[0].value.replace("\\", "")


def test_the_table_has_the_weights_of_the_run(start, model, offered):
    export(start, "html").button(key="data-csv").click().run()
    rows = csv.DictReader(io.StringIO(offered["attention-abc-reverse.csv"].decode()))
    wanted = tv.decode(model, "abc").to_frame().weight.tolist()
    assert [float(row["weight"]) for row in rows] == pytest.approx(wanted, rel=1e-6)


def test_the_rows_of_the_focus(start, model, offered):
    """Of one head, or of all heads of a layer where their mean is in focus; of another run they have not been asked for."""
    at = export(start, "html", kind="decoder", layer="2", head="1").button(key="data-focus").click().run()
    frame = tv.decode(model, "abc").to_frame("decoder.2.1")
    assert offered["attention-focus.csv"].decode() == frame.to_csv(index=False)
    offered.clear()
    enter(at, "abcd")
    assert not offered


def test_a_live_page_of_the_model(start):
    at = export(start, "live", code_of_tab="true")
    assert at.code[0].value.endswith("tv.live_page(checkpoint, 'live-reverse.html', source='abc', theme='light')")
    at.button(key="export-prepare").click().run()
    assert "live-reverse.html" in downloads(at)[0]


def test_who_looks_at_chinese_takes_a_chinese_page_along(start, offered):
    at = export(start, "html", lang="zh", code_of_tab="true")
    assert "language='zh'" in at.code[0].value
    at.button(key="export-prepare").click().run()
    assert '<html lang="zh"' in offered["attention-abc-reverse.html"].decode()
