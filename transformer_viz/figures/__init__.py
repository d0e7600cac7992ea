"""Results in, Plotly figures out. Nothing here displays, reads a file, or needs torch."""

from transformer_viz.figures.attention import attention
from transformer_viz.figures.masks import mask
from transformer_viz.figures.mosaic import mosaic
from transformer_viz.figures.player import player

__all__ = ["attention", "mask", "mosaic", "player"]
