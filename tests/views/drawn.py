"""The charts that a page sent to the browser, as the browser gets them."""

import json
from dataclasses import dataclass
from typing import Any

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


def is_chart(proto: Any) -> bool:
    """Whether a component is a chart."""
    return getattr(proto, "component_name", "") == chart.NAME


def read(proto: Any) -> Drawn:
    """What a chart was sent."""
    content = json.loads(proto.bytes)
    # `$$ID-hash-key`
    return Drawn(proto.id.split("-", 2)[-1], *(content[name] for name in ("figure", "words", "run", "clicks")))
