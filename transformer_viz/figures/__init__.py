"""Results in, Plotly figures out. Nothing here displays, reads a file, or needs torch."""

from transformer_viz.figures.attention import attention
from transformer_viz.figures.film import film
from transformer_viz.figures.losses import token_losses
from transformer_viz.figures.maps import before_and_after, softmax_maps
from transformer_viz.figures.masks import mask, mask_grid
from transformer_viz.figures.mosaic import mosaic
from transformer_viz.figures.player import player
from transformer_viz.figures.search_tree import search_tree

__all__ = [
    "attention",
    "before_and_after",
    "film",
    "mask",
    "mask_grid",
    "mosaic",
    "player",
    "search_tree",
    "softmax_maps",
    "token_losses",
]
