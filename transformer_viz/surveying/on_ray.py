"""Ray: actors on one machine or on many, each of which loads the model once. Where a unit is tried again Ray sees to that.

Only units and what they leave travel. Actors load the model by its name, so it must have that on each machine: a shipped
checkpoint has, a folder if it is shared.
"""

import os
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any

from transformer_viz.errors import SurveyError, TransformerVizError
from transformer_viz.surveying.work import MOST_TRIES, Job, Unit, Worker, lost

_INSTALL = "ray is not installed, which surveys beyond one machine need: pip install 'ray>=2.50,<3'"
AUTO = "auto"
_PATIENCE = 10
"""Seconds."""


def run(address: str, n_workers: int | None, gpus: float, job: Job, units: Iterator[Unit]) -> Generator[tuple[Unit, bytes]]:
    """An engine of Ray's actors; see `work.Engine`.

    Args:
        address: of a cluster; `auto` for the one of the environment, or one that is made here for as long as it is needed.
        n_workers: at most; None = as many as there are processors, or GPUs for them.
        gpus: of each actor.
        job: for all of them.
        units: what they do.

    Raises:
        SurveyError: Ray is not installed, the cluster is not there, or a unit cannot be run.
    """
    with _cluster(address) as ray:
        actor = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=-1, max_task_retries=MOST_TRIES - 1)(_Actor)
        room = _room(ray.cluster_resources(), gpus)
        n = min(n_workers or room, room)
        busy: dict[Any, tuple[Any, Unit]] = {}
        actors = []
        try:
            for unit in islice(units, n):
                actors.append(actor.remote(job))
                busy[actors[-1].run.remote(unit)] = actors[-1], unit
            while busy:
                (done,), _ = ray.wait(list(busy), num_returns=1)
                each, unit = busy.pop(done)
                found = _found(ray, done, unit)
                if (following := next(units, None)) is not None:
                    busy[each.run.remote(following)] = each, following
                yield unit, found
        finally:
            for each in actors:
                ray.kill(each)


class _Actor:
    """A worker in a process of Ray."""

    def __init__(self, job: Job) -> None:
        self._job, self._worker = job, None

    def run(self, unit: Unit) -> bytes | SurveyError:
        """What the unit leaves, or what a person is told."""
        try:
            self._worker = self._worker or Worker.loaded(self._job)
            return self._worker.run(unit)
        except TransformerVizError as error:
            return SurveyError(str(error))


def _found(ray: Any, done: Any, unit: Unit) -> bytes:
    try:
        found = ray.get(done)
    except ray.exceptions.RayActorError as error:
        raise lost(unit, "Ray's actor died") from error
    if isinstance(found, SurveyError):
        raise found
    return found


def _room(resources: dict[str, float], gpus: float) -> int:
    """How many actors find room at once; one more would wait for the others to end.

    Raises:
        SurveyError: none does.
    """
    n_cpus, n_gpus = resources.get("CPU", 0), resources.get("GPU", 0)
    if room := int(min(n_cpus, n_gpus / gpus) if gpus else n_cpus):
        return room
    raise SurveyError(f"The Ray cluster has {n_cpus:g} processors and {n_gpus:g} GPUs; a worker needs one and {gpus:g}.")


@contextmanager
def _cluster(address: str) -> Generator[Any]:
    # Read when Ray is imported: it asks nobody else and tells nobody anything.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        ray = import_module("ray")
    except ModuleNotFoundError:
        raise SurveyError(_INSTALL) from None
    is_ours = not ray.is_initialized()
    if is_ours:
        _init(ray, address)
    try:
        yield ray
    finally:
        if is_ours:
            ray.shutdown()


def _init(ray: Any, address: str) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address == AUTO:
            ray.init(include_dashboard=False, **quiet)
        else:
            _check_is_there(address)
            ray.init(address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise SurveyError(f"The Ray cluster {address[:200]!r} cannot be reached: {error}.") from error


def _check_is_there(address: str) -> None:
    """Ray itself would wait for ten minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError("an address is HOST:PORT, or ray://HOST:PORT")
    socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
