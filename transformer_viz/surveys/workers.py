"""The workers that run a survey's blocks: this process, processes of this machine, or tasks of Ray on one or more machines.

Each worker loads the model once, by its name. Only blocks and their results are sent.
"""

import hashlib
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import import_module
from itertools import islice
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from transformer_viz import untrusted_files
from transformer_viz.errors import OptionError, SurveyError, TransformerVizError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.readers import load_model
from transformer_viz.schema import finite_number, whole_number
from transformer_viz.surveys.blocks import survey_block, survey_verdicts
from transformer_viz.surveys.corpus import Block
from transformer_viz.surveys.result import SurveyOptions
from transformer_viz.version import __version__

MOST, MOST_GPUS = 1024, 64
_PROGRAM = 500_000_000
"""Bytes of a worker beside its model; docs/survey.md says what was measured."""
_PATIENCE = 10
"""Seconds in which the address of a cluster must answer; Ray itself would wait for ten minutes."""
VERSIONS = (("transformer_viz", __version__), ("torch", torch.__version__))
_KEPT = "Usually memory is short: take fewer workers. What is done is kept; the same command continues."
_JOIN = " Is this machine one of its nodes? `ray start --address={} --num-cpus=0` makes it one, without workers."
Stage = Literal["texts", "verdicts"]
"""The two stages of a survey: blocks of the corpus, then verdicts on a few sampled lines."""


@dataclass(frozen=True)
class Unit:
    """A unit of work; `digest` is a hash of its lines, the model and the options."""

    stage: Stage
    block: Block
    digest: str


@dataclass(frozen=True)
class Job:
    """The instructions to a worker: the model by name or folder, its fingerprint, and the survey's options."""

    model: str
    device: str
    fingerprint: str
    options: SurveyOptions
    versions: tuple[tuple[str, str], ...] = VERSIONS


def fingerprint(model: LoadedModel) -> str:
    """A sha256 in hex of the weights to the last bit, the labels of tokens, the options and the rules of generation. It tells
    apart models of one name."""
    tokenizer, sizes = model.tokenizer, model.network.sizes
    labels = [tokenizer.target_labels(range(sizes.vocabulary)), tokenizer.source_labels(range(sizes.source_vocabulary))]
    task = [model.task.name, model.task.options()] if model.task else None
    built = [model.variant, repr(model.architecture), repr(sizes)]
    about = [*built, asdict(model.options), dict(model.generation), task, *labels]
    digest = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode())
    # The weights of a reader: its own, or of the model that it wraps.
    module = next(
        candidate for candidate in (model.network, getattr(model.network, "model", None)) if isinstance(candidate, nn.Module)
    )
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def run_unit(model: LoadedModel, unit: Unit, options: SurveyOptions) -> bytes:
    """The file of a unit."""
    run = survey_block if unit.stage == "texts" else survey_verdicts
    return run(model, unit.block, options, unit.digest).to_bytes()


def run_in_worker(job: Job, unit: Unit) -> bytes | SurveyError:
    """Runs a unit in a worker. Returns the unit's file, or an error for people."""
    try:
        return run_unit(_loaded(job), unit, job.options)
    except TransformerVizError as error:
        return SurveyError(str(error))


@lru_cache(maxsize=1)
def _loaded(job: Job) -> LoadedModel:
    """Raises a SurveyError where the worker's program, or its model of this name, is not the one that began the survey."""
    where = f"on the machine {socket.gethostname()}"
    for (name, wanted), (_, version) in zip(job.versions, VERSIONS, strict=True):
        if wanted != version:
            raise SurveyError(f"{name} is {version} {where}, and {wanted} where the survey was started.")
    model = load_model(job.model, job.device)
    if fingerprint(model) != job.fingerprint:
        raise SurveyError(f"{model.name} is not the same model {where}; it was changed, or two have this name.")
    return model


@dataclass(frozen=True)
class Workers:
    """The processes or machines that a person asks for, with the arguments of `survey`; `gpus` are those of each task of Ray.

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
            raise OptionError("gpus_per_worker is for workers of Ray; give ray too, or choose a device")
        if not isinstance(self.model, str) and (self.ray is not None or (self.count or 1) > 1):
            raise OptionError("a loaded model runs in this process; for other workers give its name or its folder instead")

    @property
    def n(self) -> int | None:
        """The number of workers; None where Ray decides."""
        if self.count is not None or self.ray is not None:
            return self.count
        if not isinstance(self.model, str) or devices.resolve(self.device).type != "cpu":
            return 1
        # Those that this program may use, where the system says so.
        n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(n, MOST)

    def load(self) -> LoadedModel:
        """The model, where it runs if that is here; what others run is only looked at.

        Raises:
            OptionError: all together would need more memory than there is.
            TransformerVizError: as `load_model`.
        """
        if not isinstance(self.model, str):
            return self.model
        is_here = self.ray is None and self.n == 1
        model = load_model(self.model, self.device if is_here else "cpu")
        free, needed, n = devices.memory_of_machine(), memory_of_worker(model), self.n or 1
        if not is_here and self.ray is None and free is not None and n * needed > free:
            raise OptionError(
                f"{n} workers need about {bytes_words(n * needed)} of memory, and {bytes_words(free)} are free; take at most "
                f"{max(1, free // needed)}"
            )
        return model

    def job(self, model: LoadedModel, options: SurveyOptions) -> Job:
        """The job of the workers. Others load the model whatever their folder is; without a GPU of its own a task has none."""
        name = model.name
        if isinstance(self.model, str):
            is_path = ("/" in self.model or os.sep in self.model) and untrusted_files.is_folder(Path(self.model))
            name = str(Path(self.model).absolute()) if is_path else self.model
        device = "cpu" if self.ray is not None and not self.gpus else self.device
        return Job(name, device, fingerprint(model), options)

    def run(self, model: LoadedModel, job: Job, units: Iterable[Unit]) -> Generator[tuple[Unit, bytes]]:
        """Yields each unit with its result when it is done. Closing the generator ends the workers.

        Raises:
            SurveyError: a unit cannot be run, a worker was ended, or Ray is not there.
        """
        if self.ray is None and self.n == 1:
            yield from ((unit, run_unit(model, unit, job.options)) for unit in units)
            return
        left = iter(units)
        pool = _processes(self.n or 1) if self.ray is None else _ray_tasks(self.ray, self.count, self.gpus)
        with pool as (n_at_once, submit):
            running = {submit(job, unit): unit for unit in islice(left, n_at_once)}
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    unit, result = running.pop(future), future.result()
                    running |= {submit(job, following): following for following in islice(left, 1)}
                    if isinstance(result, SurveyError):
                        raise result
                    yield unit, result


def memory_of_worker(model: LoadedModel) -> int:
    """Bytes, about: the program, the weights, and once more the weights, while they are loaded."""
    return _PROGRAM + 2 * 4 * model.n_parameters


Submit = Callable[[Job, Unit], "Future[bytes | SurveyError]"]


@contextmanager
def _processes(n: int) -> Generator[tuple[int, Submit]]:
    """Processes of this machine. They are spawned, so that none inherits threads or locks, and end with this one."""
    before = set(active_children())
    pool = ProcessPoolExecutor(n, get_context("spawn"), initializer=_begin_process)

    def submit(job: Job, unit: Unit) -> Future[bytes | SurveyError]:
        # Processes start with the first unit, and ignore Ctrl-C from their first moment, when they cannot say so themselves.
        is_main = threading.current_thread() is threading.main_thread()
        heard = signal.signal(signal.SIGINT, signal.SIG_IGN) if is_main else None
        try:
            return pool.submit(run_in_worker, job, unit)
        finally:
            if is_main:
                signal.signal(signal.SIGINT, heard)

    try:
        # One more for each, so that none waits for this process.
        yield 2 * n, submit
    except BrokenProcessPool as error:
        raise SurveyError(f"A worker was ended before its block was done. {_KEPT}") from error
    finally:
        for process in set(active_children()) - before:
            process.kill()
        # The pool's own thread sees that they are gone, and joins them.
        pool.shutdown(cancel_futures=True)


def _begin_process() -> None:
    """Lets a worker ignore Ctrl-C, which reaches all processes of a terminal; the main process decides, and ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


@contextmanager
def _ray_tasks(address: str, n: int | None, gpus: float) -> Generator[tuple[int, Submit]]:
    """Tasks of a Ray cluster: `auto` for the one of the environment, or one that is made here for as long as it is needed."""
    # Read when Ray is imported: it asks nobody else and tells nobody anything.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        ray: Any = import_module("ray")
    except ModuleNotFoundError:
        words = "ray is not installed, which surveys beyond one machine need: pip install 'ray>=2.50,<3'"
        raise SurveyError(words) from None
    with ExitStack() as stack:
        if not ray.is_initialized():
            stack.callback(ray.shutdown)
            try:
                if address != "auto":
                    host, _, port = address.removeprefix("ray://").rpartition(":")
                    if not host or not port.isdecimal():
                        raise ValueError("an address is HOST:PORT, or ray://HOST:PORT")
                    socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
                place: dict[str, Any] = {"include_dashboard": False} if address == "auto" else {"address": address}
                ray.init(**place, log_to_driver=False, logging_level="ERROR")
            except (OSError, RuntimeError, ValueError) as error:
                hint = "" if address == "auto" or address.startswith("ray://") else _JOIN.format(address[:200])
                raise SurveyError(f"The Ray cluster {address[:200]!r} cannot be reached: {error}.{hint}") from error
        resources = ray.cluster_resources()
        n_cpus, n_gpus = resources.get("CPU", 0), resources.get("GPU", 0)
        room = int(min(n_cpus, n_gpus / gpus) if gpus else n_cpus)
        if not room:
            raise SurveyError(
                f"The Ray cluster has {n_cpus:g} processors and {n_gpus:g} GPUs; a worker needs one and {gpus:g}."
            )
        task = ray.remote(num_cpus=1, num_gpus=gpus)(run_in_worker)
        try:
            yield min(n or room, room), lambda job, unit: task.remote(job, unit).future()
        except ray.exceptions.RayError as error:
            why = str(error).strip().splitlines()[-1:] or [type(error).__name__]
            raise SurveyError(
                f"Ray could not run a block: {why[0].strip()}. Each machine must have this package and what it needs, of the "
                f"same versions. {_KEPT}"
            ) from error
