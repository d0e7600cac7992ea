"""The protocol of a loaded model.

A `Checkpoint` is a loaded model, and so is what `load_model` returns for a model that is not ours.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from transformer_viz.errors import OptionError, short_repr
from transformer_viz.model.architecture import Architecture
from transformer_viz.model_options import ModelOptions
from transformer_viz.tasks.task import Task

if TYPE_CHECKING:
    import torch

    from transformer_viz.decoding.reader import Reader
    from transformer_viz.decoding.tokenizer import Tokenizer


def in_one_line(model: "LoadedModel") -> str:
    """A model's `repr`: its weights and its architecture would fill pages."""
    return f"<{type(model).__name__} {short_repr(model.name)}: {model.variant}, on {model.device}>"


def check_loaded(model: Any) -> None:
    """Refuses what is no loaded model, with the line that makes one of it.

    Raises:
        OptionError: it is a module, a name, or something else.
    """
    if hasattr(model, "tokenizer") and hasattr(model, "architecture"):
        return
    if isinstance(model, str):
        raise OptionError(f"the model is a text, {short_repr(model)}; load it first: tv.load_model({short_repr(model)})")
    if hasattr(model, "forward") and hasattr(model, "parameters"):
        is_of_hugging_face = type(model).__module__.startswith("transformers.")
        how = "tokenizer" if is_of_hugging_face else "vocabulary, start=…, end=…"
        raise OptionError(f"the model is a {type(model).__name__} in memory; wrap it first: model = tv.wrap(model, {how})")
    raise OptionError(f"the model is {type(model).__name__}; give what tv.load_model, tv.load_checkpoint or tv.wrap returns")


@runtime_checkable
class LoadedModel(Protocol):
    """A model that is ready to run."""

    @property
    def name(self) -> str:
        """The name of the model for people; never a path of this machine."""

    @property
    def variant(self) -> str:
        """The kind of model, such as `pre-norm`."""

    @property
    def network(self) -> "Reader":
        """The underlying network, which reads and writes ids."""

    @property
    def tokenizer(self) -> "Tokenizer":
        """Converts text to token ids and back."""

    @property
    def task(self) -> Task | None:
        """The built-in task; None for an external model."""

    @property
    def device(self) -> "torch.device":
        """The device that holds the weights."""

    @property
    def architecture(self) -> Architecture:
        """The architecture, as far as it is known."""

    @property
    def n_parameters(self) -> int:
        """The number of trained parameters."""

    @property
    def default_max_length(self) -> int:
        """The most tokens that it writes unless it is told otherwise, the end included."""

    @property
    def default_total_length(self) -> int | None:
        """The most tokens of a prompt and its output together, of which one at least is written; None = no such limit."""

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The results of its evaluation, as JSON has them; empty where it was not evaluated."""

    @property
    def generation(self) -> Mapping[str, Any]:
        """The rules by which the model itself changes what its logits would write, as JSON has them; empty = none."""

    @property
    def languages(self) -> Sequence[str]:
        """The codes of those that it translates between; none for most models."""

    @property
    def options(self) -> ModelOptions:
        """Options of reading and writing."""

    def with_options(self, options: ModelOptions) -> "LoadedModel":
        """The same model with other options; None leaves one as it is.

        Raises:
            TransformerVizError: an option that it does not have, or a language that it does not know.
        """
