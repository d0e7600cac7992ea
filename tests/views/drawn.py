"""What a page sent to the browser, as the browser gets it: its words, its charts."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pandas as pd
from streamlit.testing.v1 import AppTest

from tests.until import until
from transformer_viz.views.components import chart
from transformer_viz.views.components.markdown import APART

Start = Callable[..., AppTest]
"""The fixture `start`: a session on a page, with what its link says."""
CODE = {"explore_tab": "Export", "code_of_tab": "true"}
"""The tab of Explore with the lines that draw the pictures above it."""


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


def press(at: AppTest, label: str) -> AppTest:
    """The page after a click on the button with these words."""
    return next(button for button in at.button if button.label == label).click().run()


def box(at: AppTest, key: str) -> Any:
    """The box of this key, where it is another one after each change from elsewhere (`link.selectbox_pressed`)."""
    return next(each for each in (*at.text_input, *at.selectbox) if (each.key or "").startswith(f"{key}_box_"))


def drop(at: AppTest, *files: tuple[str, bytes]) -> AppTest:
    """The page after files were dropped into its first box."""
    return at.file_uploader[0].set_value([(name, data, "") for name, data in files]).run()


def chart_of(at: AppTest, key: str) -> dict[str, Any]:
    """The figure of the chart with this key."""
    return next(drawn.figure for drawn in charts(at) if drawn.key == key)


def said(at: AppTest) -> str:
    """All words of the page but those of controls, charts, tables and programs."""
    kinds = (at.error, at.warning, at.info, at.success, at.markdown, at.caption, at.text)
    return read_markdown("\n".join(str(element.value) for kind in kinds for element in kind))


def read_markdown(words: str) -> str:
    """Words that are sent as Markdown, as one reads them, but for what is strong."""
    return words.replace(APART, "").translate({ord("\\"): "", ord("\u00a0"): " "})


def codes(at: AppTest) -> str:
    """All programs and commands that are shown."""
    return "\n".join(code.value for code in at.code)


def programs(at: AppTest, language: str = "python") -> list[str]:
    """The lines behind every open fold *Show the code*: of Python, or of a terminal ("bash")."""
    folds = [fold.code[0] for fold in at.expander if fold.label == "Show the code" and fold.code]
    return [code.value for code in folds if code.language == language]


def shown(again: dict[str, Any]) -> list[dict[str, Any]]:
    """What lines drew that `run_code` has run."""
    return [picture_of(figure) for figure in again["figures"]]


def on_page(at: AppTest, first: int = 0, last: int | None = None) -> list[dict[str, Any]]:
    """What the page draws, as `shown` has it."""
    return [picture_of(figure) for figure in pictures(at)][first:last]


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
    """Whether a component is a chart, in whichever language."""
    return getattr(proto, "component_name", "").startswith(chart.NAME)


def read(proto: Any) -> Drawn:
    """What a chart was sent."""
    content = json.loads(proto.bytes)
    # `$$ID-hash-key`
    return Drawn(proto.id.split("-", 2)[-1], *(content[name] for name in ("figure", "words", "run", "clicks")))


def finished(at: AppTest) -> AppTest:
    """The page after its runs, which need nobody any more, and may have ended before the page began to watch them."""
    while "long_job" in at.session_state:
        run = at.session_state["long_job"]
        until(lambda run=run: run.state == "done")
        at.run()
    return at
