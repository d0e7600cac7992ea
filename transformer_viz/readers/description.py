"""What is known of a model that is not ours before anything of it is loaded, and what every reader says and checks then."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformer_viz.errors import FileError, ModelError, short_repr
from transformer_viz.numbers_in_words import bytes_words, percent_words

if TYPE_CHECKING:
    import torch

_SINGLE = 4
_SHARE = 0.8
"""Of the memory that is free: what a model may take."""

Say = Callable[[str, float | None], None]
"""Hears what loading does, in words, and which share of its weights is there."""


def in_silence(words: str, share: float | None) -> None:
    """For those who do not watch."""


@dataclass(frozen=True)
class Description:
    """What a folder says of its model.

    Attributes:
        family: which kind of model it is; of Hugging Face `model_type`, as transformers names it.
        n_parameters: numbers in its files of weights, what they share counted once.
        n_bytes: of these files.
    """

    family: str
    n_parameters: int
    n_bytes: int

    @property
    def memory(self) -> int:
        """Bytes that its weights take when it is loaded, in single precision whatever the file has."""
        return _SINGLE * self.n_parameters


def check_memory(description: Description, name: str, device: "torch.device") -> None:
    """The model is read into the machine's memory, and from there goes to its device.

    Raises:
        ModelError: there is no room.
    """
    import torch

    from transformer_viz.model import devices

    for where in dict.fromkeys((torch.device("cpu"), device)):
        free = devices.free_memory(where)
        if free is not None and description.memory > _SHARE * free:
            raise ModelError(
                f"{name} needs {bytes_words(description.memory)} for its {description.n_parameters:,} parameters in single "
                f"precision; {devices.title(where)} has {bytes_words(free)} free, of which a model may take "
                f"{percent_words(_SHARE)}. Take a smaller model, or close other programs."
            )


@contextmanager
def model_errors(name: str, file: str) -> Generator[None]:
    """Says of which model and file a FileError is."""
    try:
        yield
    except FileNotFoundError:
        raise ModelError(f"{name}: {short_repr(file)} is missing. Copy or download the whole folder again.") from None
    except FileError as error:
        raise ModelError(f"{name}: {short_repr(file)} cannot be read: {error}.") from error
