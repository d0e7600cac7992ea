"""The app's charts, in the page."""

from playwright.sync_api import Page

FOCUS = ".st-key-focus .js-plotly-plot"


def wait_until_drawn(page: Page, chart: str = FOCUS) -> None:
    """Until there is such a chart, and it is drawn."""
    page.wait_for_function("(chart) => document.querySelector(chart)?.__drawn", arg=chart)


def wait_for_head(page: Page, kind: str, layer: int, head: int | str) -> None:
    """Until the focus map of that head is drawn, counted from 0."""
    page.wait_for_function(
        """([chart, ...head]) => {
          const drawn = document.querySelector(chart)?.__drawn;
          return drawn && [drawn.kind, drawn.layer, drawn.head].join() === head.join();
        }""",
        arg=[FOCUS, kind, layer, head],
    )


def wait_for_step(page: Page, step: int) -> None:
    """Until the focus map is drawn and stands at that step, from 0."""
    page.wait_for_function(
        "([chart, step]) => { const found = document.querySelector(chart); return found?.__drawn && found.__step === step; }",
        arg=[FOCUS, step],
    )
