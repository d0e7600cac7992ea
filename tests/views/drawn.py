"""The charts that a page sent to the browser, as the browser gets them."""

import json
from dataclasses import dataclass
from typing import Any

from streamlit.testing.v1 import AppTest

from transformer_viz.views.components import chart, table, tabs


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


def hypotheses(at: AppTest) -> dict[str, Any]:
    """What the table of a search's hypotheses was sent, with `text`, `log p` and the like: each a column's cells."""
    [sent] = [
        json.loads(element.proto.json)
        for element in at.get("bidi_component")
        if element.proto.component_name == "transformer-viz-hypotheses"
    ]
    cells = zip(*(row["cells"] for row in sent["rows"]), strict=True)
    return {**sent, **dict(zip(sent["columns"], cells, strict=True))}


def picture_of(figure: dict[str, Any]) -> dict[str, Any]:
    """What there is to see of a figure. A template is for Plotly's objects, and not every chart is sent with it."""
    layout = {name: value for name, value in figure["layout"].items() if name != "template"}
    return {"data": figure["data"], "layout": layout, "frames": figure.get("frames")}


@dataclass(frozen=True)
class Tabled:
    """One table as the browser has it: texts by columns, and which row is in focus."""

    label: str
    columns: dict[str, list[str]]
    values: dict[str, list[float | str | None]]
    go: list[bool] | None
    here: int | None


def tables(at: AppTest) -> list[Tabled]:
    """The tables that are ours."""
    found = [part.proto for part in at.get("bidi_component") if part.proto.component_name == table.NAME]
    return [_tabled(json.loads(proto.json or proto.bytes)) for proto in found]


def _tabled(sent: dict[str, Any]) -> Tabled:
    titles = [column["title"] for column in sent["columns"]]
    texts, values = (
        {title: [row[place][what] for row in sent["rows"]] for place, title in enumerate(titles)} for what in ("text", "value")
    )
    return Tabled(sent["label"], texts, values, sent["go"] and sent["go"]["rows"], sent["here"])


def titles(at: AppTest) -> list[str]:
    """Of the tabs."""
    return [
        title
        for element in at.get("bidi_component")
        if is_tabs(element.proto)
        for title in json.loads(element.proto.json)["titles"]
    ]


def is_tabs(proto: Any) -> bool:
    """Whether a component is a row of tabs."""
    return getattr(proto, "component_name", "") == tabs.NAME


def is_chart(proto: Any) -> bool:
    """Whether a component is a chart."""
    return getattr(proto, "component_name", "") == chart.NAME


def read(proto: Any) -> Drawn:
    """What a chart was sent."""
    content = json.loads(proto.bytes)
    # `$$ID-hash-key`
    return Drawn(proto.id.split("-", 2)[-1], *(content[name] for name in ("figure", "words", "run", "clicks")))
