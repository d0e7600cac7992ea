"""The app through AppTest, on a tiny random checkpoint of its own."""

import functools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import streamlit as st
import torch
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from transformer_viz import checkpoints
from transformer_viz.checkpoints import save_checkpoint
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.runs import jobs
from transformer_viz.runs.jobs import Job
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.training.defaults import recipe_for
from transformer_viz.views.parts.opened import Opened

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def packages_read_once() -> Iterator[None]:
    """Each new AppTest looks for components in what every installed package says: half a second, and always the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", functools.cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only checkpoints that the app finds: `reverse`, tiny and untrained."""
    task = Reverse()
    size = len(task.source_vocabulary)
    torch.manual_seed(1)
    model = Transformer(
        ModelConfig(source_vocabulary_size=size, target_vocabulary_size=size, d_model=12, n_heads=3, d_ff=7, n_encoder_layers=1)
    )
    metrics: dict[str, Any] = {"best_head": {"layer": 1, "head": 2}, "exact_match": 0.0, "best_head_mass": 0.1, "samples": 128}
    save_checkpoint(tmp_path / "reverse", model, task, variant="pre-norm", recipe={}, metrics=metrics)
    monkeypatch.setattr(checkpoints, "folders", lambda: [tmp_path])
    st.cache_data.clear()
    st.cache_resource.clear()
    return tmp_path


@pytest.fixture
def everything(folder: Path, make_snapshots: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that pages can show: a second checkpoint, with snapshots, as the examples of Search and Replay have it; two jobs."""
    shutil.copytree(folder / "reverse", folder / "reverse-small")
    make_snapshots(folder / "reverse-small")
    places = folder / "trainings" / ".jobs"
    places.mkdir(parents=True)
    rows = [{"step": 50 * i, "loss": 3.0 / i, "held_out": i / 20, "mass_0_1": i / 30} for i in range(1, 9)]
    made = [Job(name, places / name, recipe_for("reverse"), 1.0) for name in ("first", "second")]
    for job in made:
        job.place.with_name(f"{job.name}.events").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    monkeypatch.setattr(jobs, "jobs", lambda: made)
    monkeypatch.setattr(Job, "state", property(lambda self: "paused"))
    return folder


def go(at: AppTest, page: str | None) -> AppTest:
    """The next run shows this page; AppTest's own `switch_page` knows pages that are files only."""
    at._page_hash = calc_hash(page or "")
    return at


@pytest.fixture
def visit() -> Callable[[AppTest, str | None], AppTest]:
    """`visit(at, page)`; None is the first page."""
    return lambda at, page: go(at, page).run()


@pytest.fixture
def start(folder: Path) -> Callable[..., AppTest]:
    def run(page: str | None = None, held: Mapping[str, Opened] = MappingProxyType({}), /, **query: str) -> AppTest:
        """`held` are the trace files that the session holds; no link can bring them."""
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        if held:
            at.session_state["opened"], at.session_state["opened_latest"] = dict(held), next(iter(held))
        for key, value in query.items():
            at.query_params[key] = value
        go(at, page)
        return at.run()

    return run
