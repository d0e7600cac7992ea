"""Functions from a result to a Plotly figure. They display nothing, read no files and need no torch.

A new figure is a file `NAME.py` with a function `NAME`; this folder is searched for it. The ones below are imported by name, so
that editors and type checkers know them. Figures of surveys, training and attribution import this package, so they are loaded
when they are first used.
"""

from collections.abc import Callable
from importlib import import_module
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
    from transformer_viz.attribution.figures import counter_proof as counter_proof
    from transformer_viz.attribution.figures import faithfulness as faithfulness
    from transformer_viz.attribution.figures import knock_out as knock_out
    from transformer_viz.attribution.figures import patching as patching
    from transformer_viz.surveys.figures import survey_agreement as survey_agreement
    from transformer_viz.surveys.figures import survey_calibration as survey_calibration
    from transformer_viz.surveys.figures import survey_difference as survey_difference
    from transformer_viz.surveys.figures import survey_distribution as survey_distribution
    from transformer_viz.surveys.figures import survey_heads as survey_heads
    from transformer_viz.surveys.figures import survey_lengths as survey_lengths
    from transformer_viz.training.figures import snapshot_maps as snapshot_maps
    from transformer_viz.training.figures import training as training
    from transformer_viz.training.figures import training_playback as training_playback

_OF_SURVEYS = tuple(f"survey_{name}" for name in ("agreement", "calibration", "difference", "distribution", "heads", "lengths"))
_ROOM_OF = {
    **dict.fromkeys(("counter_proof", "faithfulness", "knock_out", "patching"), "attribution"),
    **dict.fromkeys(_OF_SURVEYS, "surveys"),
    **dict.fromkeys(("snapshot_maps", "training", "training_playback"), "training"),
}
__all__ = [
    *_ROOM_OF,
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
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"transformer_viz.{_ROOM_OF[name]}.figures"), name)
