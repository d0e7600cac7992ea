"""Functions from a result to a Plotly figure. They display nothing, read no files and need no torch.

A new figure is a file `NAME.py` with a function `NAME`; this folder is searched for it. The ones below are imported by name, so
that editors and type checkers know them.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from transformer_viz.figures.attention import attention
from transformer_viz.figures.by_length import accuracy_by_length
from transformer_viz.figures.change import change
from transformer_viz.figures.difference import difference
from transformer_viz.figures.difference_mosaic import difference_mosaic
from transformer_viz.figures.experiments import counter_proof, faithfulness, knock_out, patching
from transformer_viz.figures.grades import grades
from transformer_viz.figures.losses import token_losses
from transformer_viz.figures.maps import before_and_after, softmax_maps
from transformer_viz.figures.masks import mask, mask_grid
from transformer_viz.figures.mosaic import mosaic
from transformer_viz.figures.overview import overview
from transformer_viz.figures.player import player
from transformer_viz.figures.row import row
from transformer_viz.figures.search_tree import search_tree
from transformer_viz.figures.surveys import (
    survey_agreement,
    survey_calibration,
    survey_difference,
    survey_distribution,
    survey_heads,
    survey_lengths,
)
from transformer_viz.figures.theme import Style
from transformer_viz.figures.training import snapshot_maps, training, training_playback

__all__ = [
    "Style",
    "accuracy_by_length",
    "attention",
    "before_and_after",
    "change",
    "counter_proof",
    "difference",
    "difference_mosaic",
    "faithfulness",
    "grades",
    "knock_out",
    "mask",
    "mask_grid",
    "mosaic",
    "overview",
    "patching",
    "player",
    "row",
    "search_tree",
    "snapshot_maps",
    "softmax_maps",
    "survey_agreement",
    "survey_calibration",
    "survey_difference",
    "survey_distribution",
    "survey_heads",
    "survey_lengths",
    "token_losses",
    "training",
    "training_playback",
]

_modules = {module.name: import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)}
FOUND: dict[str, Callable[..., Any]] = {name: vars(module)[name] for name, module in _modules.items() if name in vars(module)}
"""Names of the figures in this folder: every module with a function of its own name."""
globals().update(FOUND)
