"""What a tab below the pictures shows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformer_viz.figures.theme import ThemeName
from transformer_viz.trace.trace import Trace
from transformer_viz.views.snippets.runs import AnyRun

if TYPE_CHECKING:
    from transformer_viz.checkpoints import Checkpoint


@dataclass(frozen=True)
class Shown:
    """A run, and what is known of where it came from."""

    trace: Trace
    run: AnyRun
    """How the trace comes about, for “Show the code”."""
    theme: ThemeName
    checkpoint: "Checkpoint | None" = None
    """None for a file: it is looked at without the model."""
    device: str = ""
    """As chosen: `auto` or a device."""
    whole: Trace | None = None
    """The search that the trace is a branch of."""
