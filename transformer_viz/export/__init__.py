"""A run as a file: pages, pictures and tables that work without this program. Needs neither torch nor streamlit."""

from transformer_viz.export.frames import frame
from transformer_viz.export.inside_page import inside_html
from transformer_viz.export.pages import figure_html, html
from transformer_viz.export.pictures import picture
from transformer_viz.export.saving import save
from transformer_viz.export.survey_page import survey_html
from transformer_viz.export.tables import table

__all__ = ["figure_html", "frame", "html", "inside_html", "picture", "save", "survey_html", "table"]
