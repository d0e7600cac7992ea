"""Two servers with one folder of trainings: one training at a time of both, and whose it is, is the same on each."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.training.tiny import RECIPE
from tests.until import until
from transformer_viz import places
from transformer_viz.training import jobs
from transformer_viz.training.visitor import OWNER

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="no flock there")]
ROOT = Path(__file__).resolve().parents[2]
SERVER = """
import json, sys
from pathlib import Path
from transformer_viz import places
from transformer_viz.errors import OptionError
from transformer_viz.training import jobs, trash
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.visitor import Visitor

places.trained = lambda: Path(sys.argv[1])
recipe = Recipe.from_json(json.loads(sys.argv[2]))
print('"ready"', flush=True)
for line in sys.stdin:
    what, name, token = json.loads(line)
    visitor, job = Visitor(token), next((job for job in jobs.jobs() if job.name == name), None)
    try:
        if what == "start":
            jobs.start(recipe, name, visitor)
        elif what == "discard":
            trash.discard(job, visitor)
        else:
            job.request(what, visitor)
        said = "done"
    except OptionError as error:
        said = str(error)
    print(json.dumps(said), flush=True)
"""
MINE, THEIRS = "m" * 43, "t" * 43


class Server:
    """A process that does what a page of it asks for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin and process.stdout
        self._to, self._of = process.stdin, process.stdout

    def tell(self, *asked: str) -> None:
        self._to.write(json.dumps(asked) + "\n")
        self._to.flush()

    def said(self) -> Any:
        return json.loads(self._of.readline())

    def ask(self, *asked: str) -> Any:
        self.tell(*asked)
        return self.said()


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Server]]:
    monkeypatch.setattr(places, "trained", lambda: tmp_path / "trained")
    endless = json.dumps({**RECIPE.to_json(), "steps": 10**6})
    command = [sys.executable, "-c", SERVER, str(places.trained()), endless]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(2)
        ]
        for process in processes:
            stack.callback(process.kill)
        servers = [Server(process) for process in processes]
        assert [server.said() for server in servers] == ["ready"] * 2
        yield servers
    for job in jobs.jobs():
        job.request("stop", OWNER)


def test_one_training_of_two_servers_and_its_starter_alone_manages_it_on_both(both: list[Server]) -> None:
    for server, name, token in zip(both, ("one", "two"), (MINE, THEIRS), strict=True):
        server.tell("start", name, token)
    answers = [server.said() for server in both]
    assert sorted(answer == "done" for answer in answers) == [False, True]
    first = answers.index("done")
    name, starter, stranger = (("one", MINE, THEIRS), ("two", THEIRS, MINE))[first]
    assert answers[1 - first].startswith(f"{name} is being trained")
    (job,) = jobs.jobs()
    until(lambda: job.state == "running")
    for server in both:
        assert "was started in another browser" in server.ask("stop", name, stranger)
        assert "Stop it first" in server.ask("discard", name, starter)
    assert both[1 - first].ask("stop", name, starter) == "done"
    until(lambda: job.state == "finished")
    assert "was started in another browser" in both[first].ask("discard", name, stranger)
    assert both[1 - first].ask("discard", name, starter) == "done"
    assert jobs.jobs() == []
