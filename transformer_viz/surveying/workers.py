"""Who does the work of a survey: this process, processes of this machine, or actors of Ray."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from transformer_viz import reading
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.readers import load_model
from transformer_viz.schema import finite_number, whole_number
from transformer_viz.surveying import on_ray, processes
from transformer_viz.surveying.work import Engine, here

MOST = 1024
MOST_GPUS = 64
_PROGRAM = 500_000_000
"""Bytes of a worker beside its model; docs/survey.md says what was measured."""


@dataclass(frozen=True)
class Workers:
    """As a person asks for them.

    Attributes:
        model: a name or a folder, which each loads; or a loaded model, which is not handed to other processes.
        device: where the model runs.
        count: how many; None = one for each processor that this program may use, or that Ray has.
        ray: `auto`, or a cluster's address; None = no Ray.
        gpus: of each actor of Ray.

    Raises:
        OptionError: what does not go together, or cannot be.
    """

    model: str | LoadedModel
    device: str = "auto"
    count: int | None = None
    ray: str | None = None
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if self.count is not None:
            whole_number("workers", self.count, 1, MOST)
        finite_number("gpus_per_worker", self.gpus, 0, MOST_GPUS)
        if self.gpus and self.ray is None:
            raise OptionError("gpus_per_worker is for actors of Ray; give ray too, or choose a device")
        if not isinstance(self.model, str) and (self.ray is not None or (self.count or 1) > 1):
            raise OptionError("a loaded model runs in this process; for other workers give its name or its folder instead")

    @property
    def n(self) -> int | None:
        """How many there are; None where Ray decides."""
        if self.count is not None or self.ray is not None:
            return self.count
        is_here = not isinstance(self.model, str) or devices.resolve(self.device).type != "cpu"
        return 1 if is_here else min(_n_processors(), MOST)

    def load(self) -> LoadedModel:
        """The model, where it runs if that is here; what others run is only looked at."""
        if not isinstance(self.model, str):
            return self.model
        return load_model(self.model, self.device if self._is_here else "cpu")

    @property
    def name(self) -> str:
        """By which others load the model, whatever their folder is."""
        if not isinstance(self.model, str):
            return self.model.name
        is_path = "/" in self.model or os.sep in self.model
        return str(Path(self.model).absolute()) if is_path and reading.is_folder(Path(self.model)) else self.model

    @property
    def their_device(self) -> str:
        """Where they run it: without a GPU of its own an actor has none."""
        return "cpu" if self.ray is not None and not self.gpus else self.device

    def engine(self, model: LoadedModel) -> Engine:
        """What runs units.

        Raises:
            OptionError: they would need more memory than there is.
            SurveyError: Ray is not there.
        """
        if self.ray is not None:
            return partial(on_ray.run, self.ray, self.n, self.gpus)
        if self._is_here:
            return partial(here, model)
        assert self.n is not None
        free, needed = devices.memory_of_machine(), memory_of_worker(model)
        if free is not None and self.n * needed > free:
            raise OptionError(
                f"{self.n} workers need about {bytes_words(self.n * needed)} of memory, and {bytes_words(free)} are free; "
                f"take at most {max(1, free // needed)}"
            )
        return partial(processes.run, self.n)

    @property
    def _is_here(self) -> bool:
        return self.ray is None and self.n == 1


def _n_processors() -> int:
    """Those that this program may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_of_worker(model: LoadedModel) -> int:
    """Bytes, about: the program, the weights, and once more the weights, while they are loaded."""
    return _PROGRAM + 2 * 4 * model.n_parameters
