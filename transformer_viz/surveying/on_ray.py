"""Ray: actors on one machine or on many, each of which loads the model once. Where they run Ray decides.

Only units and what they leave travel. Actors load the model by its name, so it must have that on each machine: a shipped
checkpoint has, a folder if it is shared.
"""

import os
import re
import socket
from collections import Counter, deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from time import monotonic
from typing import Any

import torch

from transformer_viz.errors import SurveyError, TransformerVizError
from transformer_viz.surveying.work import MOST_TRIES, Job, Unit, Worker, lost
from transformer_viz.version import __version__

_INSTALL = "ray is not installed, which surveys beyond one machine need: pip install 'ray>=2.50,<3'"
AUTO, _CLIENT = "auto", "ray://"
_PATIENCE, _LOOK_EVERY = 10, 5
"""Seconds: in which an address must answer, and from one look at it to the next."""
_GIVE_UP = 20
"""Seconds without the head of a cluster. After 60 Ray would end this process."""
_JOIN = " Is this machine one of its nodes? `ray start --address={} --num-cpus=0` makes it one, without workers."
_WHY = "Mostly that is for lack of memory: take fewer workers. What is done is kept, and the same survey goes on."
VERSIONS = {"transformer_viz": __version__, "torch": torch.__version__}


def run(address: str, n_workers: int | None, gpus: float, job: Job, units: Iterator[Unit]) -> Generator[tuple[Unit, bytes]]:
    """An engine of Ray's actors; see `work.Engine`.

    Args:
        address: of a cluster; `auto` for the one of the environment, or one that is made here for as long as it is needed.
        n_workers: at most; None = as many as there are processors, or GPUs for them.
        gpus: of each actor.
        job: for all of them.
        units: what they do.

    Raises:
        SurveyError: Ray is not installed, the cluster is not there or goes away, or a unit cannot be run.
    """
    with _cluster(address) as ray:
        room = _room(ray.cluster_resources(), gpus)
        crew = _Crew(ray, _Head(ray, address), gpus, job)
        try:
            yield from crew.run(min(n_workers or room, room), units)
        finally:
            crew.end()


class Actor:
    """A worker in a process of Ray."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def load(self, versions: dict[str, str]) -> SurveyError | None:
        """Loads the model; what a person is told where that cannot be.

        Args:
            versions: of what decides numbers, which must be here what they are there.
        """
        try:
            for name, version in versions.items():
                if VERSIONS[name] != version:
                    raise SurveyError(f"{name} is {VERSIONS[name]}, and {version} where the survey was started.")
            self._worker = Worker.loaded(self._job)
        except TransformerVizError as error:
            return SurveyError(f"On the machine {socket.gethostname()}: {error}")
        return None

    def run(self, unit: Unit) -> bytes | SurveyError:
        """What the unit leaves, or what a person is told."""
        try:
            return self._worker.run(unit)
        except TransformerVizError as error:
            return SurveyError(str(error))


@dataclass
class _Seat:
    """Room for an actor: which has it now, its unit (None = it loads the model), and how many ended there in a row while they
    loaded it."""

    actor: Any
    unit: Unit | None = None
    n_ended: int = 0


class _Crew:
    """Actors, and what each has in hand.

    One that ends is replaced by another, wherever Ray finds room for it, and who is free first takes over its unit: where a
    machine is gone there may be no room, but there are the others.
    """

    def __init__(self, ray: Any, head: "_Head", gpus: float, job: Job) -> None:
        self._ray, self._head = ray, head
        remote = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=0, max_task_retries=0)(Actor)
        self._make = lambda: remote.remote(job)
        self._busy: dict[Any, _Seat] = {}
        self._waiting: deque[Unit] = deque()
        self._n_ended: Counter[Unit] = Counter()

    def run(self, n: int, units: Iterator[Unit]) -> Generator[tuple[Unit, bytes]]:
        """What each unit leaves, by `n` actors at most."""
        self._waiting.extend(islice(units, n))
        for _ in range(len(self._waiting)):
            self._hire()
        while self._waiting or any(seat.unit is not None for seat in self._busy.values()):
            done = self._next()
            seat = self._busy.pop(done)
            try:
                found = self._found(done)
            except _Ended as how:
                self._replace(seat, str(how))
                continue
            # An actor without anything to do is let go, and Ray ends it.
            if (following := self._waiting.popleft() if self._waiting else next(units, None)) is not None:
                self._busy[seat.actor.run.remote(following)] = _Seat(seat.actor, following)
            if seat.unit is not None and found is not None:
                yield seat.unit, found

    def end(self) -> None:
        """At once, where there is a head to ask: without one Ray would wait for it."""
        if self._head.is_there:
            for seat in self._busy.values():
                self._ray.kill(seat.actor)

    def _hire(self, n_ended: int = 0) -> None:
        """A new actor, which loads the model first."""
        actor = self._make()
        self._busy[actor.load.remote(VERSIONS)] = _Seat(actor, n_ended=n_ended)

    def _replace(self, seat: _Seat, how: str) -> None:
        """Another actor, and the unit waits for one that is free.

        Raises:
            SurveyError: that was tried often enough.
        """
        if seat.unit is None:
            if seat.n_ended + 1 == MOST_TRIES:
                raise SurveyError(f"A worker ended {MOST_TRIES} times while it loaded the model ({how}). {_WHY}")
            return self._hire(seat.n_ended + 1)
        self._n_ended[seat.unit] += 1
        if self._n_ended[seat.unit] == MOST_TRIES:
            raise lost(seat.unit, how)
        self._waiting.append(seat.unit)
        return self._hire()

    def _next(self) -> Any:
        """What is done next."""
        while True:
            done, _ = self._ray.wait(list(self._busy), num_returns=1, timeout=_LOOK_EVERY)
            self._head.check()
            if done:
                return done[0]

    def _found(self, done: Any) -> bytes | None:
        """What an actor says.

        Raises:
            _Ended: it has ended, or its machine.
            SurveyError: what went wrong there.
        """
        errors = self._ray.exceptions
        try:
            found = self._ray.get(done)
        except errors.RayTaskError:
            raise
        except errors.RayError as error:
            if getattr(error, "actor_init_failed", False):
                raise SurveyError(_cannot_begin(str(error))) from error
            raise _Ended(type(error).__name__) from error
        if isinstance(found, SurveyError):
            raise found
        return found


def _cannot_begin(said: str) -> str:
    """From Ray's account, which ends with the reason and has the machine somewhere before."""
    where = re.search(r"\bip=([0-9a-fA-F.:]+)", said)
    why = said.strip().splitlines()[-1].strip()
    return (
        f"No worker can begin on the machine {where[1] if where else 'of a cluster'}: {why}. Each machine must have this "
        "package and what it needs, of the same versions."
    )


class _Ended(Exception):
    """An actor has, or its machine; as Ray calls it."""


class _Head:
    """The head of a cluster, which must be there: without it Ray ends its processes a minute later, this one among them."""

    def __init__(self, ray: Any, address: str) -> None:
        self._address = address if address.startswith(_CLIENT) else ray.get_runtime_context().gcs_address
        self._looked = self._seen = monotonic()
        self.is_there = True

    def check(self) -> None:
        """Looks whether it is there, now and then.

        Raises:
            SurveyError: it has not been for a while.
        """
        if monotonic() - self._looked < _LOOK_EVERY:
            return
        try:
            _check_is_there(self._address)
            self._seen, self.is_there = monotonic(), True
        except OSError as error:
            self.is_there = False
            if monotonic() - self._seen > _GIVE_UP:
                raise SurveyError(
                    f"The Ray cluster {self._address!r} is gone: {error}. What is done is kept, and the same survey goes on."
                ) from error
        self._looked = monotonic()


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
        hint = "" if address == AUTO or address.startswith(_CLIENT) else _JOIN.format(address[:200])
        raise SurveyError(f"The Ray cluster {address[:200]!r} cannot be reached: {error}.{hint}") from error


def _check_is_there(address: str) -> None:
    """Ray itself would wait for ten minutes."""
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError("an address is HOST:PORT, or ray://HOST:PORT")
    socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
