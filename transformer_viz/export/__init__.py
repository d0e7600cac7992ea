"""Writes a run as a file that works without this program: pages, pictures and tables. Needs neither torch nor streamlit."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from transformer_viz.export.moving import animation
from transformer_viz.export.pages import figure_html, frame, html
from transformer_viz.export.saving import picture, save, table
from transformer_viz.inside_head.page import inside_html

__all__ = ["animation", "figure_html", "frame", "html", "inside_html", "masks_bytes", "picture", "save", "survey_html", "table"]

if TYPE_CHECKING:
    from transformer_viz.config_masks.page import masks_bytes as masks_bytes
    from transformer_viz.surveys.page import survey_html as survey_html

_OF_ROOMS = {
    "masks_bytes": "transformer_viz.config_masks.page",
    "survey_html": "transformer_viz.surveys.page",
    "live": "transformer_viz.live.page",
    "live_html": "transformer_viz.live.page",
}
"""Pages of a room, which itself needs this folder: loaded when they are first used."""


def __getattr__(name: str) -> Any:
    if name not in _OF_ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_OF_ROOMS[name]), name)
