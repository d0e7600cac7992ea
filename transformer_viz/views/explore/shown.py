"""`Shown`: the run that the tabs of Explore get, with where it came from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transformer_viz.trace.trace import Trace
from transformer_viz.views.components.measured import NOTHING, Measured

if TYPE_CHECKING:
    from transformer_viz.checkpoints import Checkpoint
    from transformer_viz.loaded_model import LoadedModel


@dataclass(frozen=True)
class Shown:
    """A run, and what made it."""

    trace: Trace
    """The run as it is shown: perhaps by words."""
    tokens: Trace
    """The same run by tokens."""
    model: "LoadedModel | None" = None
    """The run's model; None for a file: it is looked at without the model."""
    whole: Trace | None = None
    """The search that the trace is a branch of."""
    is_other_decoding: bool = False
    """True where it was written by beam search, sampled, or forced."""
    measured: Measured = NOTHING
    """The measure that the pictures above show beside the weights or instead of them."""
    tree: Any = None
    """The picture of the search above."""

    @property
    def is_decoded(self) -> bool:
        """Tells whether its model wrote it greedily or read it, so that it can be run again with a change."""
        return self.model is not None and not self.is_other_decoding

    @property
    def checkpoint(self) -> "Checkpoint | None":
        """The model, if it is one of ours."""
        if self.model is None:
            return None
        # Here, because a file is looked at where there is no torch.
        from transformer_viz.checkpoints import Checkpoint

        return self.model if isinstance(self.model, Checkpoint) else None
