"""A component for HTML from a template, whose buttons and links report clicks: a model's drawing, lists of texts.

Templates escape what is put into them: what a user typed is text in them, never markup.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import streamlit as st
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from transformer_viz.language import say
from transformer_viz.viewer import modules
from transformer_viz.views.components import presses

_VIEWS = Path(__file__).parents[1]
TEMPLATES = Environment(
    loader=FileSystemLoader(_VIEWS), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)

cast(dict[str, Any], TEMPLATES.globals)["say"] = say


def show(
    template: str,
    key: str,
    on_press: Callable[[Any], None] | None = None,
    *,
    style: str = "",
    script: str = "",
    data: Mapping[str, Any] | None = None,
    **parts: Any,
) -> None:
    """Draws a template.

    Args:
        template: of this package's folder `views/`, as `components/drawing.html`; its style stands beside it.
        key: tells it from the page's others.
        on_press: is called with the `data-at` of what was pressed, as the browser says it, which may be nonsense.
        style: rules of others, before its own.
        script: a function `begin(root, data)` of the template's own, which is called whenever it was drawn anew.
        data: what that is given.
        parts: what the template needs.
    """

    def heard() -> None:
        if on_press is None:
            return
        for pressed in presses.new(key):
            on_press(pressed)

    html = TEMPLATES.get_template(template).render(parts)
    _component(template, style, script)(key=key, data={"html": html, **(data or {})}, on_presses_change=heard)


@cache
def _component(template: str, style: str, script: str) -> Any:
    """Registered once a process for each template."""
    place = _VIEWS / template
    css, own = (path.read_text(encoding="utf-8") for path in (place.with_suffix(".css"), Path(__file__).with_suffix(".js")))
    name = f"transformer-viz-{place.stem}"
    js = f"{modules.script('presses.js')}\n{script}\n{own}"
    return st.components.v2.component(name, html='<div class="markup"></div>', css=f"{style}\n{css}", js=js)
