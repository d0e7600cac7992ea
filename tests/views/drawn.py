"""The charts that a page sent to the browser, as the browser gets them."""

import json
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pandas as pd
from streamlit.testing.v1 import AppTest

from transformer_viz.views.components import chart


@dataclass(frozen=True)
class Drawn:
    """One chart: its key, its figure as JSON, and what is said of it."""

    key: str
    figure: dict[str, Any]
    words: str
    run: str | None
    clicks: str | None


def charts(at: AppTest) -> list[Drawn]:
    """All charts, in the order of the page."""
    return [read(element.proto) for element in at.get("bidi_component") if is_chart(element.proto)]


def pictures(at: AppTest) -> list[dict[str, Any]]:
    """Their figures alone."""
    return [drawn.figure for drawn in charts(at)]


def markups(at: AppTest, name: str) -> list[Element]:
    """What a template of this name has become, each time that it is on the page."""
    sent = [part.proto for part in at.get("bidi_component") if part.proto.component_name == f"transformer-viz-{name}"]
    return [fromstring(json.loads(proto.json)["html"]) for proto in sent]


def text_of(element: Element | None) -> str:
    """As one reads it."""
    assert element is not None
    return "".join(element.itertext())


def token_words(compared: Element, strip: str, side: int) -> list[str]:
    """The tokens of one run in a strip of Compare; nothing where another run alone has a token."""
    pairs = [pair for pair in compared.iter("span") if pair.find(f"*[@data-strip='{strip}']") is not None]
    return [text_of(pair[side]) if pair[side].get("data-strip") else "" for pair in pairs]


def table_of(at: AppTest, column: str) -> pd.DataFrame:
    """The table that has a column of this name."""
    [found] = [frame.value for frame in at.dataframe if column in frame.value.columns]
    return found


def picture_of(figure: dict[str, Any]) -> dict[str, Any]:
    """What there is to see of a figure. A template is for Plotly's objects, and not every chart is sent with it."""
    layout = {name: value for name, value in figure["layout"].items() if name != "template"}
    return {"data": figure["data"], "layout": layout, "frames": figure.get("frames")}


def titles(at: AppTest) -> list[str]:
    """Of the tabs."""
    return [tab.label for tab in at.tabs]


def is_chart(proto: Any) -> bool:
    """Whether a component is a chart."""
    return getattr(proto, "component_name", "") == chart.NAME


def read(proto: Any) -> Drawn:
    """What a chart was sent."""
    content = json.loads(proto.bytes)
    # `$$ID-hash-key`
    return Drawn(proto.id.split("-", 2)[-1], *(content[name] for name in ("figure", "words", "run", "clicks")))
