"""Describes another library's model before it is loaded, and has the checks and messages that all readers share."""

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
"""The share of the free memory that a model may take."""

Say = Callable[[str, float | None], None]
"""A callback for the progress of loading: what it does, in words, and the share of the weights that is loaded."""


def in_silence(words: str, share: float | None) -> None:
    """A `Say` that does nothing."""


@dataclass(frozen=True)
class Description:
    """The description of the model in a folder.

    Attributes:
        family: which kind of model it is; of Hugging Face `model_type`, as transformers names it.
        n_parameters: numbers in its files of weights, shared ones counted once.
        n_bytes: the size of these files.
    """

    family: str
    n_parameters: int
    n_bytes: int

    @property
    def memory(self) -> int:
        """Bytes that its weights take when it is loaded, in single precision whatever the file has."""
        return _SINGLE * self.n_parameters


def check_memory(description: Description, name: str, device: "torch.device") -> None:
    """Checks that a model fits into the machine's memory, where it is read, and into that of its device.

    Raises:
        ModelError: it does not fit; the message has the figures.
    """
    import torch

    from transformer_viz.model import devices

    for where in dict.fromkeys((torch.device("cpu"), device)):
        free = torch.cuda.mem_get_info(where)[0] if where.type == "cuda" else devices.memory_of_machine()
        if free is not None and description.memory > _SHARE * free:
            raise ModelError(
                f"{name} needs {bytes_words(description.memory)} for its {description.n_parameters:,} parameters in single "
                f"precision; {devices.title(where)} has {bytes_words(free)} free, of which a model may take "
                f"{percent_words(_SHARE)}. Take a smaller model, or close other programs."
            )


@contextmanager
def model_errors(name: str, file: str) -> Generator[None]:
    """Turns a FileError into a ModelError that names the model and the file."""
    try:
        yield
    except FileNotFoundError:
        raise ModelError(f"{name}: {short_repr(file)} is missing. Copy or download the whole folder again.") from None
    except FileError as error:
        raise ModelError(f"{name}: {short_repr(file)} cannot be read: {error}.") from error
