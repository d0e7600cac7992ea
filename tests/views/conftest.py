"""The app through AppTest, on a tiny random checkpoint of its own."""

import contextlib
import functools
import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import plotly.graph_objects as go
import pytest
import streamlit as st
import torch
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from tests import inside, tiny_models
from tests.surveys.made import survey as made_survey
from tests.training import tiny
from transformer_viz import app_folders, checkpoints
from transformer_viz.checkpoints import save_checkpoint
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.readers.firefox import folder as firefox
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.training.recipes import recipe_for
from transformer_viz.views.cache.store import store
from transformer_viz.views.components.opened import Opened
from transformer_viz.views.server import jobs, visitors
from transformer_viz.views.server.jobs import Job
from transformer_viz.views.state import visits
from transformer_viz.vocabulary import END_ID

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def _every_page() -> Iterator[None]:
    """A page that raises fails its test.

    Each new AppTest looks for components in what every installed package says: half a second, and always the same.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", functools.cache(manifest_scanner.scan_component_manifests))
        inside.fail_with_the_page(patch)
        yield


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`reverse`, tiny and untrained, in a folder that nobody may change."""
    parent = tmp_path_factory.mktemp("saved")
    task = Reverse()
    size = len(task.source_vocabulary)
    torch.manual_seed(33)
    model = Transformer(
        ModelConfig(source_vocabulary_size=size, target_vocabulary_size=size, d_model=12, n_heads=3, d_ff=7, n_encoder_layers=1)
    )
    # So it writes something else to each text, and ends after 5 to 14 tokens and not only at the limit of 33.
    assert model.source_embedding is not None and model.output.bias is not None
    model.source_embedding.weight.data *= 3
    model.target_embedding.weight.data *= 3
    model.output.bias.data[END_ID] += 1
    metrics: dict[str, Any] = {"best_head": {"layer": 1, "head": 2}, "exact_match": 0.0, "best_head_mass": 0.1, "samples": 128}
    save_checkpoint(parent / "reverse", model, task, variant="pre-norm", recipe={}, metrics=metrics)
    (parent / "reverse" / "survey").mkdir()
    (parent / "reverse" / "survey" / "summary.json").write_text(made_survey().to_json(), encoding="utf-8")
    return parent


@pytest.fixture(scope="session")
def saved_with_more(saved: Path, make_snapshots: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Beside it `reverse-small`, with snapshots, as the examples of Search and Replay have it, and what two jobs have said."""
    parent = shutil.copytree(saved, tmp_path_factory.mktemp("saved") / "more")
    shutil.copytree(saved / "reverse", parent / "reverse-small")
    make_snapshots(parent / "reverse-small")
    places = parent / "trainings" / ".jobs"
    for name in ("first", "second"):
        (places / name).mkdir(parents=True)
        tiny.report(places / name)
    return parent


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator, a decoder alone and an encoder alone, tiny and untrained."""
    return tiny_models.save(tmp_path_factory.mktemp("models"))


@pytest.fixture
def models(saved_models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that this machine has beside the checkpoints."""
    monkeypatch.setenv("TRANSFORMER_VIZ_MODELS", str(saved_models))
    monkeypatch.setenv("HF_HUB_CACHE", str(saved_models / "none"))
    monkeypatch.setattr(firefox, "packaged", dict)
    return saved_models


_cached_of: list[Path] = []
"""The folder whose checkpoints and runs Streamlit's caches hold: they know checkpoints by name. None: the shipped ones."""


def _cache(*folder: Path) -> None:
    if _cached_of != [*folder]:
        st.cache_resource.clear()
        store.results.clear()
        _cached_of[:] = folder


@pytest.fixture(autouse=True)
def _alone() -> None:
    """The visits of other tests, which Python has not thrown away yet, are nobody's."""
    visits._visits.clear()


@pytest.fixture(autouse=True)
def _shipped(request: pytest.FixtureRequest) -> None:
    """A test that asks for no folder finds what the repository ships."""
    if "only" not in request.fixturenames:
        _cache()


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], Path]]:
    """`only(folder)`: the app finds the checkpoints in this folder, and no others. None of them may be changed.

    What the last test's pages have loaded and decoded is still known, as on a server. A test that puts something else in the
    place of what loads or decodes asks for `own_folder`, whose pages have seen nothing yet.
    """
    before: dict[Path, dict[Path, tuple[int, int]]] = {}

    def put(folder: Path) -> Path:
        monkeypatch.setattr(checkpoints, "folders", lambda: [folder])
        _cache(folder)
        before[folder] = _files(folder)
        return folder

    yield put
    for folder, files in before.items():
        assert _files(folder) == files, "the test changed what all tests share; `own_folder` is its own"


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(saved: Path, only: Callable[[Path], Path]) -> Path:
    """The only checkpoints that the app finds: `reverse`, tiny and untrained."""
    return only(saved)


@pytest.fixture
def own_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, for this test alone: it may be changed, and no page has been opened yet."""
    own = shutil.copytree(folder, tmp_path / "checkpoints")
    monkeypatch.setattr(checkpoints, "folders", lambda: [own])
    _cache(own)
    return own


@pytest.fixture
def model(folder: Path) -> checkpoints.Checkpoint:
    """The checkpoint of `folder`."""
    return checkpoints.load_checkpoint(str(folder / "reverse"), "cpu")


@pytest.fixture
def shipped(folder: Path, only: Callable[[Path], Path]) -> Path:
    """The app finds the checkpoints that the repository ships."""
    return only(app_folders.ROOT / "checkpoints")


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What the page offers to download, by file name."""
    files: dict[str, bytes] = {}
    monkeypatch.setattr(st, "download_button", lambda label, data, name, *_, **__: files.update({name: data}))
    return files


@pytest.fixture
def run_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Runs lines in a namespace of their own; `figures` are those that it showed, `said` is what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(lines: str) -> dict[str, Any]:
        figures: list[dict[str, Any]] = []
        names: dict[str, Any] = {}
        monkeypatch.setattr(go.Figure, "show", lambda figure, **_: figures.append(json.loads(figure.to_json())))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(lines, "shown", "exec"), names)
        return {**names, "figures": figures, "said": said.getvalue()}

    return run


@pytest.fixture
def everything(folder: Path, saved_with_more: Path, only: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that pages can show: a second checkpoint, with snapshots, and two jobs."""
    places = saved_with_more / "trainings" / ".jobs"
    made = [Job(folder=places / name, recipe=recipe_for("reverse"), started=1.0) for name in ("first", "second")]
    monkeypatch.setattr(jobs, "jobs", lambda: made)
    monkeypatch.setattr(Job, "state", property(lambda self: "paused"))
    return only(saved_with_more)


@pytest.fixture
def visit() -> Callable[[AppTest, str | None], AppTest]:
    """`visit(at, page)`; None is the first page."""
    return inside.visit


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """`browser(token)`: whose browser the next runs are of; None, as at the beginning, keeps no cookies."""

    def use(token: str | None) -> None:
        # AppTest has no handshake, from which a session has its cookies.
        kept = {} if token is None else {visitors.COOKIE: token}
        monkeypatch.setattr(type(st.context), "cookies", kept | inside.WITHOUT_A_QUESTION)

    use(None)
    return use


@pytest.fixture
def start(folder: Path, browser: Callable[[str | None], None]) -> Callable[..., AppTest]:
    def run(page: str | None = None, held: Mapping[str, Opened] = MappingProxyType({}), /, **query: str) -> AppTest:
        """`held` are the trace files that the session holds; no link can bring them."""
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        if held:
            at.session_state["opened"], at.session_state["opened_latest"] = dict(held), next(iter(held))
        for key, value in query.items():
            at.query_params[key] = value
        return inside.visit(at, page)

    return run
