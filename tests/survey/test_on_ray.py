"""Ray: the same bits, and a sentence where it is not installed."""

import os
import sys
from importlib import import_module

import pytest

import transformer_viz as tv
from tests.needs import needs
from tests.survey import dying
from tests.survey.conftest import texts
from tests.survey.test_processes import job_of, units_of
from transformer_viz.errors import SurveyError
from transformer_viz.surveying import on_ray
from transformer_viz.surveying.work import here


def test_without_ray_it_is_said_what_to_install(tiny_name, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SurveyError, match="pip install 'ray>="):
        tv.survey(tiny_name, ["abc"], ray="auto", output=tmp_path / "new")


@needs("ray")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning:ray", "ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_actors_one_of_them_killed_leave_what_this_process_leaves(tiny_name, tmp_path):
    job = job_of(tiny_name)
    units = units_of(job, [*texts(64), dying.ONCE, str(tmp_path / "mark"), *texts(200)])
    with pytest.raises(SurveyError, match="GPUs; a worker needs one and 1000"):
        next(on_ray.run("auto", 2, 1000, job, iter(units)))
    found = dict(on_ray.run("auto", 500, 0, job, iter(units)))
    assert (tmp_path / "mark").exists()
    assert found == dict(here(tv.load_checkpoint(tiny_name, "cpu"), job, iter(units)))
    assert not import_module("ray").is_initialized()
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


@needs("ray")
@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "ray://:x"])
def test_a_cluster_that_is_not_there_is_said(address, tiny_name):
    job = job_of(tiny_name)
    with pytest.raises(SurveyError, match="cannot be reached"):
        next(on_ray.run(address, 1, 0, job, iter(units_of(job, ["a"]))))
