"""Ray: the same bits, and a sentence where it is not installed."""

import os
import socket
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
from transformer_viz.surveying.work import Job, here


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
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning:ray", "ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_machine_that_is_lost_for_good_leaves_its_block_to_the_others(tiny_name):
    """Two nodes of one processor each: where the second is gone there is no room for another actor."""
    job = job_of(tiny_name)
    units = units_of(job, texts(64 * 12))
    cluster = import_module("ray.cluster_utils").Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        lost = cluster.add_node(num_cpus=1)
        running = on_ray.run(cluster.address, None, 0, job, iter(units))
        found = dict([next(running), next(running)])
        cluster.remove_node(lost, allow_graceful=False)
        found |= dict(running)
    finally:
        cluster.shutdown()
    assert found == dict(here(tv.load_checkpoint(tiny_name, "cpu"), job, iter(units)))


@needs("ray")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning:ray", "ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_worker_with_another_model_or_other_versions_says_which_machine(tiny_name):
    job = job_of(tiny_name)
    with pytest.raises(SurveyError, match=f"On the machine {socket.gethostname()}: tiny is not the same model"):
        next(on_ray.run("auto", 1, 0, Job(job.model, "cpu", "another", job.options), iter(units_of(job, ["a"]))))
    said = on_ray.Actor(job).load({**on_ray.VERSIONS, "torch": "1.0"})
    assert str(said).endswith(f"torch is {on_ray.VERSIONS['torch']}, and 1.0 where the survey was started.")


@needs("ray")
@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "ray://:x"])
def test_a_cluster_that_is_not_there_is_said(address, tiny_name):
    job = job_of(tiny_name)
    with pytest.raises(SurveyError, match="cannot be reached"):
        next(on_ray.run(address, 1, 0, job, iter(units_of(job, ["a"]))))
