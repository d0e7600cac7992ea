"""`Shown`: the run that the tabs of Explore get, with where it came from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transformer_viz.figures.theme import ThemeName
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components.measured import Measured
from transformer_viz.views.components.stepper import NOTHING

if TYPE_CHECKING:
    from transformer_viz.checkpoints import Checkpoint
    from transformer_viz.loaded_model import LoadedModel


@dataclass(frozen=True)
class Shown:
    """A run, and what is known of where it came from."""

    trace: Trace
    """As it is shown: perhaps by words."""
    theme: ThemeName
    model: "LoadedModel | None" = None
    """None for a file: it is looked at without the model."""
    by_tokens: Trace | None = None
    """Where the trace is by words: what it was made of, for what goes on from tokens."""
    whole: Trace | None = None
    """The search that the trace is a branch of."""
    is_other_decoding: bool = False
    """Whether it was written by beam search, sampled, or forced."""
    measured: Measured = NOTHING
    """What the pictures above show beside the weights, or instead."""
    tree: Any = None
    """The picture of the search above."""

    @property
    def is_decoded(self) -> bool:
        """Whether it is what its model wrote greedily or read, which can be run again with a change: no file, and no other
        decoding."""
        return self.model is not None and not self.is_other_decoding

    @property
    def tokens(self) -> Trace:
        """The run by tokens."""
        return self.by_tokens or self.trace

    @property
    def checkpoint(self) -> "Checkpoint | None":
        """The model, if it is one of ours."""
        if self.model is None:
            return None
        # Here, because a file is looked at where there is no torch.
        from transformer_viz.checkpoints import Checkpoint

        return self.model if isinstance(self.model, Checkpoint) else None
