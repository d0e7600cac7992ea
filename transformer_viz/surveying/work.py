"""What every worker does, wherever it is: loads the model once, and runs one unit of work after the other."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Literal

from transformer_viz.errors import SurveyError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.readers import load_model
from transformer_viz.surveying.block import Block
from transformer_viz.surveying.fingerprint import fingerprint
from transformer_viz.surveying.on_block import survey_block
from transformer_viz.surveying.on_verdicts import survey_verdicts
from transformer_viz.surveying.options import SurveyOptions

MOST_TRIES = 3
"""How often a unit is run whose worker ends without a word."""
Stage = Literal["texts", "verdicts"]
"""Blocks of the corpus, then the verdicts of a few sampled lines."""


@dataclass(frozen=True)
class Unit:
    """Work that one worker does and that leaves one file; `digest` is what the file carries."""

    stage: Stage
    block: Block
    digest: str

    def __str__(self) -> str:
        lines = self.block.lines
        return f"lines {lines[0].number} to {lines[-1].number}" + (" (verdicts)" if self.stage == "verdicts" else "")


Task = Callable[[LoadedModel, Unit, SurveyOptions], bytes]
"""What becomes of a unit: its file."""


def leave(model: LoadedModel, unit: Unit, options: SurveyOptions) -> bytes:
    """The file of a unit."""
    run = survey_block if unit.stage == "texts" else survey_verdicts
    return run(model, unit.block, options).to_bytes(unit.digest)


@dataclass(frozen=True)
class Job:
    """What a worker is told once.

    Attributes:
        model: a name, or an absolute folder.
        device: where the model runs.
        fingerprint: of the model that is meant.
        options: of the survey.
        task: what becomes of a unit; a function of a module, since workers are told its name.
    """

    model: str
    device: str
    fingerprint: str
    options: SurveyOptions
    task: Task = leave


Engine = Callable[[Job, Iterator[Unit]], Generator[tuple[Unit, bytes]]]
"""Runs units, and gives each with what it leaves as it is done. It takes no more of them than it has workers for, and ends
these when it is closed."""


class Worker:
    """A loaded model and what is done with it."""

    def __init__(self, model: LoadedModel, job: Job) -> None:
        self._model, self._job = model, job

    @classmethod
    def loaded(cls, job: Job) -> "Worker":
        """Loads the model.

        Raises:
            SurveyError: what has its name here is another model.
        """
        model = load_model(job.model, job.device)
        if fingerprint(model) != job.fingerprint:
            raise SurveyError(f"{model.name} is not the same model for each worker; it was changed, or two have this name.")
        return cls(model, job)

    def run(self, unit: Unit) -> bytes:
        """The file that the unit leaves."""
        return self._job.task(self._model, unit, self._job.options)


def here(model: LoadedModel, job: Job, units: Iterator[Unit]) -> Generator[tuple[Unit, bytes]]:
    """The engine without workers: this process, and a model that is loaded."""
    worker = Worker(model, job)
    for unit in units:
        yield unit, worker.run(unit)


def lost(unit: Unit, how: str) -> SurveyError:
    """Says that a unit was tried often enough."""
    return SurveyError(
        f"The worker with {unit} ended {MOST_TRIES} times before it was done ({how}). Mostly that is for lack of memory: take "
        "fewer workers, or take these lines out. What is done is kept, and the same survey goes on."
    )
