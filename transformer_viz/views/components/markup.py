"""HTML that a template makes, of which buttons and links can be pressed: the drawing of a model, lists of texts.

Templates escape what is put into them: what a user typed is text in them, never markup.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from jinja2 import Environment, FileSystemLoader, StrictUndefined

_VIEWS = Path(__file__).parents[1]
_TEMPLATES = Environment(
    loader=FileSystemLoader(_VIEWS), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)


def show(template: str, key: str, on_press: Callable[[Any, Any], None] | None = None, **parts: Any) -> None:
    """Draws a template.

    Args:
        template: of this package's folder `views/`, as `components/drawing.html`; its style stands beside it.
        key: tells it from the page's others.
        on_press: is called with the `data-at` of what was pressed and the step that the player is at, as the browser says
            them, which may be nonsense.
        parts: what the template needs.
    """
    name = Path(template).stem
    component = _component(f"transformer-viz-{name}", str(Path(template).with_suffix(".css")))

    def heard() -> None:
        pressed = (st.session_state.get(key) or {}).get("press")
        if on_press is not None and isinstance(pressed, dict):
            on_press(pressed.get("at"), pressed.get("step"))

    component(key=key, data={"html": _TEMPLATES.get_template(template).render(parts)}, on_press_change=heard)


@cache
def _component(name: str, style: str) -> Any:
    """Registered once a process for each style."""
    css, js = (_VIEWS / style).read_text(encoding="utf-8"), Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    return st.components.v2.component(name, html='<div class="markup"></div>', css=css, js=js)
