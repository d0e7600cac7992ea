"""Writes a run as a file that works without this program: pages, pictures and tables. Needs neither torch nor streamlit."""

from transformer_viz.export.inside_page import inside_html
from transformer_viz.export.masks_page import masks_bytes
from transformer_viz.export.moving import animation
from transformer_viz.export.pages import figure_html, frame, html
from transformer_viz.export.saving import picture, save, table
from transformer_viz.export.survey_page import survey_html

__all__ = ["animation", "figure_html", "frame", "html", "inside_html", "masks_bytes", "picture", "save", "survey_html", "table"]
