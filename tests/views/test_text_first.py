"""The pictures of a browser's first visit wait for its text; no later ones do, and none where there is no browser."""

from unittest.mock import Mock

import pytest
import streamlit as st

from transformer_viz.views.components import text_first


@pytest.fixture
def visit(monkeypatch):
    """A session without a run, and the sleeps that it asks for."""
    sleep, context = Mock(), Mock(headers={"User-Agent": "a browser"})
    monkeypatch.setattr(st, "session_state", {})
    monkeypatch.setattr(st, "context", context)
    monkeypatch.setattr(text_first.time, "sleep", sleep)
    return sleep, context


def test_the_first_pictures_wait_once(visit):
    sleep, _ = visit
    text_first.hold()
    text_first.hold()
    assert sleep.call_count == 1


def test_after_another_page_nothing_waits(visit):
    sleep, _ = visit
    text_first.drawn()
    text_first.hold()
    sleep.assert_not_called()


def test_without_a_browser_nothing_waits(visit):
    sleep, context = visit
    context.headers = {}
    text_first.hold()
    sleep.assert_not_called()
