"""Functions from a result to a Plotly figure. They display nothing, read no files and need no torch.

A new figure is a file `NAME.py` with a function `NAME`; this folder is searched for it. The ones below are imported by name, so
that editors and type checkers know them. Figures of surveys, training and attribution import this package, so they are loaded
when they are first used.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from transformer_viz.figures.attention import attention
from transformer_viz.figures.by_length import accuracy_by_length
from transformer_viz.figures.change import change
from transformer_viz.figures.difference import difference
from transformer_viz.figures.difference_mosaic import difference_mosaic
from transformer_viz.figures.grades import grades
from transformer_viz.figures.losses import token_losses
from transformer_viz.figures.maps import before_and_after, softmax_maps
from transformer_viz.figures.masks import mask, mask_grid
from transformer_viz.figures.mosaic import mosaic
from transformer_viz.figures.overview import overview
from transformer_viz.figures.player import player
from transformer_viz.figures.search_tree import search_tree
from transformer_viz.figures.theme import Style

if TYPE_CHECKING:
    from transformer_viz.attribution.figures.counter_proof import counter_proof as counter_proof
    from transformer_viz.attribution.figures.faithfulness import faithfulness as faithfulness
    from transformer_viz.attribution.figures.knock_out import knock_out as knock_out
    from transformer_viz.attribution.figures.patching import patching as patching
    from transformer_viz.surveys.figures.survey_agreement import survey_agreement as survey_agreement
    from transformer_viz.surveys.figures.survey_calibration import survey_calibration as survey_calibration
    from transformer_viz.surveys.figures.survey_difference import survey_difference as survey_difference
    from transformer_viz.surveys.figures.survey_distribution import survey_distribution as survey_distribution
    from transformer_viz.surveys.figures.survey_heads import survey_heads as survey_heads
    from transformer_viz.surveys.figures.survey_lengths import survey_lengths as survey_lengths
    from transformer_viz.training.figures.snapshot_maps import snapshot_maps as snapshot_maps
    from transformer_viz.training.figures.training import training as training
    from transformer_viz.training.figures.training_playback import training_playback as training_playback

_ROOMS = ("attribution", "surveys", "training")
_OF_ROOMS = {
    file.stem: f"transformer_viz.{room}.figures.{file.stem}"
    for room in _ROOMS
    for file in sorted((Path(__file__).parent.parent / room / "figures").glob("[a-z]*.py"))
}
__all__ = [
    *_OF_ROOMS,
    "Style",
    "accuracy_by_length",
    "attention",
    "before_and_after",
    "change",
    "difference",
    "difference_mosaic",
    "grades",
    "mask",
    "mask_grid",
    "mosaic",
    "overview",
    "player",
    "search_tree",
    "softmax_maps",
    "token_losses",
]

_modules = {module.name: import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)}
FOUND: dict[str, Callable[..., Any]] = {name: vars(module)[name] for name, module in _modules.items() if name in vars(module)}
"""Names of the figures in this folder: every module with a function of its own name."""
globals().update(FOUND)


def __getattr__(name: str) -> Any:
    if name not in _OF_ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_OF_ROOMS[name]), name)
