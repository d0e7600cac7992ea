"""Every page's figure as a file: what is drawn is what is saved, it is made when asked for, and what cannot be made is said."""

import json
from typing import Any

import pytest

from tests.views.drawn import charts
from transformer_viz import export

PAGES = {
    "heads": (None, {"text": "hello", "explore_tab": "Heads"}, "heads-chart"),
    "masks": ("masks", {"sources": "hello\nab"}, "lab-masks-chart"),
    "losses": ("masks", {"sources": "hello\nab", "masks_tab": "Loss"}, "lab-loss-chart"),
    "scores": ("masks", {"sources": "hello\nab", "masks_tab": "Scores to weights"}, "lab-scores-chart"),
    "mask": ("masks", {"sources": "hello\nab", "masks_tab": "Change and run again"}, "lab-edit-chart"),
    "change": ("masks", {"sources": "hello\nab", "masks_tab": "Change and run again"}, "lab-change"),
    "search-tree": (None, {"text": "abc", "decoding": "beam"}, "search-tree-chart"),
    "difference": ("compare", {}, "compare-chart"),
    "film": ("train", {"learned": "true", "text": "hello", "checkpoint": "reverse-small"}, "film-chart"),
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that were made into pictures; nothing is really drawn."""
    figures: list[Any] = []

    def picture(figure: Any, format: str) -> bytes:
        figures.append(figure)
        return format.encode() * 2000

    monkeypatch.setattr(export, "picture", picture)
    return figures


@pytest.mark.parametrize("name", PAGES)
def test_the_picture_is_the_chart_on_the_page(start, everything, made, name):
    page, query, key = PAGES[name]
    at = start(page, **query)
    assert not made
    at.button(key=f"picture-{name}-svg").click().run()
    labels = [button.label.replace("\\", "") for button in at.get("download_button")]
    assert [label for label in labels if name in label] == [f"Download {name}.svg (6 kB)"]
    (drawn,) = (chart for chart in charts(at) if chart.key == key)
    assert json.loads(made[0].to_json())["data"] == drawn.figure["data"]


def test_a_page_is_made_without_a_browser(start):
    at = start(explore_tab="Heads", text="ab")
    at.button(key="picture-heads-html").click().run()
    assert any("heads\\.html" in button.label for button in at.get("download_button"))
