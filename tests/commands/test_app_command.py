"""`app`: how Streamlit is started, and what is refused before. The page itself is tested in a browser."""

import os
import runpy
import socket
import sys
from pathlib import Path

import pytest

from tests.needs import needs
from tests.readers import saved_models
from transformer_viz import app_folders, server_settings
from transformer_viz.commands import app
from transformer_viz.views.server import opening

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Streamlit does not start; its command line is kept, and the folder that it would have been run in."""
    commands: list[tuple[Path, list[str]]] = []

    def run_module(name, run_name):
        assert (name, run_name) == ("streamlit", "__main__")
        commands.append((Path.cwd(), sys.argv))

    monkeypatch.setattr(runpy, "run_module", run_module)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.chdir(tmp_path)
    for name in (
        server_settings.HOSTS_VARIABLE,
        server_settings.SHARED_VARIABLE,
        server_settings.SHARED_MODELS_VARIABLE,
        app_folders.SURVEYS_VARIABLE,
    ):
        monkeypatch.setenv(name, "")
    return commands


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_what_is_started(cli, started, free_port):
    """In this process, where Streamlit's settings are: guards an app that goes on when its parent is stopped."""
    port = str(free_port)
    assert cli("app", "--port", port).code == 0
    assert cli("app", "--port", port, "--address", "127.0.0.1", "--", "--server.headless", "true", "-v").code == 0
    run = ["streamlit", "run", "app.py", f"--server.port={port}"]
    assert started == [
        (ROOT, [*run, "--server.address=localhost"]),
        (ROOT, [*run, "--server.address=127.0.0.1", "--server.headless", "true", "-v"]),
    ]


def test_names_that_are_allowed(cli, started, free_port):
    """They travel in the environment, which the server inherits."""
    assert cli("app", "--port", str(free_port), "--allow-host", "Viz.example", "--allow-host", "*.b.example").code == 0
    assert server_settings.allowed_hosts() == ("viz.example", "*.b.example")
    assert len(started) == 1


def test_impossible_settings(mistake, started, monkeypatch):
    assert "name of a host" in mistake("app", "--allow-host", "http://viz.example")
    monkeypatch.setenv(server_settings.variable("run_seconds"), "many")
    assert server_settings.variable("run_seconds") in mistake("app")
    assert not started


def test_a_relative_folder_of_checkpoints_is_seen_from_where_the_command_was_typed(
    cli, started, monkeypatch, free_port, tmp_path
):
    monkeypatch.setenv(app_folders.FOLDERS_VARIABLE, "mine")
    assert cli("app", "--port", str(free_port)).code == 0
    assert os.environ[app_folders.FOLDERS_VARIABLE] == str(tmp_path / "mine")


def test_lessons_of_ones_own_are_seen_from_where_the_command_was_typed(cli, mistake, started, monkeypatch, free_port, tmp_path):
    monkeypatch.setenv(app_folders.LESSONS_VARIABLE, "")
    assert "no folder mine, given as --lessons" in mistake("app", "--port", str(free_port), "--lessons", "mine")
    (tmp_path / "mine").mkdir()
    assert cli("app", "--port", str(free_port), "--lessons", "mine").code == 0
    assert os.environ[app_folders.LESSONS_VARIABLE] == str(tmp_path / "mine")


@needs("transformers")
def test_a_folder_with_a_model_is_known_on_every_page_and_opened(cli, mistake, started, monkeypatch, free_port, tmp_path):
    mine, port = saved_models.save(tmp_path / "mine"), str(free_port)
    monkeypatch.setenv(app_folders.MODELS_VARIABLE, os.pathsep.join(["", "more", "even/more"]))
    monkeypatch.setenv(server_settings.OPENS_VARIABLE, "")
    assert cli("app", "--port", port, "--model", "./mine").code == 0
    assert os.environ[app_folders.MODELS_VARIABLE].split(os.pathsep) == [
        str(mine),
        *(f"{tmp_path}/{each}" for each in ("more", "even/more")),
    ]
    assert len(started) == 1
    assert opening.here().endswith("/?checkpoint=mine")
    (tmp_path / "empty").mkdir()
    assert "no model in" in mistake("app", "--port", port, "--model", "mine", "--model", "empty")
    (mine / "model.safetensors").unlink()
    assert "mine" in mistake("app", "--port", port, "--model", "mine")
    assert len(started) == 1


def test_a_port_in_use_is_said(mistake, started):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        line = mistake("app", "--port", port, "--address", "127.0.0.1")
    assert port in line
    assert "in use" in line
    assert "--port" in line
    assert not started


@pytest.mark.parametrize("address", ["nowhere.invalid", "300.1.1.1", "a" * 300])
def test_impossible_addresses(mistake, started, free_port, address):
    assert "cannot listen" in mistake("app", "--port", str(free_port), "--address", address)
    assert not started


def test_without_streamlit(mistake, started, monkeypatch):
    monkeypatch.setattr(app, "find_spec", lambda name: None)
    line = mistake("app")
    assert "streamlit is not installed" in line
    assert "requirements.txt" in line


def test_what_is_said_of_trainings_reaches_the_server(cli, started, monkeypatch, free_port):
    """Through the environment, as for `streamlit run`."""
    names = (server_settings.NO_TRAINING_VARIABLE, server_settings.variable("trained_bytes"))
    for name in names:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    assert cli("app", "--port", str(free_port)).code == 0
    assert server_settings.trains() and server_settings.limits().trained_bytes == 2 * 10**9
    assert cli("app", "--port", str(free_port), "--no-training", "--max-trained-bytes", "5000").code == 0
    assert not server_settings.trains() and server_settings.limits().trained_bytes == 5000


@pytest.mark.parametrize(
    ("arguments", "is_shared", "shows_all"),
    [
        ([], False, True),
        (["--address", "127.0.0.1"], False, True),
        (["--address", "0.0.0.0"], True, False),
        (["--shared"], True, False),
        (["--allow-host", "viz.example"], True, False),
        (["--shared", "--models", "cache"], True, True),
        (["--shared", "--models", "named"], True, False),
    ],
)
def test_who_can_be_reached_by_others_shows_what_was_named(
    cli, started, monkeypatch, free_port, tmp_path, arguments, is_shared, shows_all
):
    """Of surveys too: those of the folder in which the app was started are private, unless the folder was named."""
    assert cli("app", "--port", str(free_port), *arguments).code == 0
    assert (server_settings.is_shared(), server_settings.shows_all_models()) == (is_shared, shows_all)
    assert app_folders.surveys() == (None if is_shared else tmp_path / "surveys")
    monkeypatch.setenv(app_folders.SURVEYS_VARIABLE, "mine")
    monkeypatch.chdir(tmp_path)
    assert cli("app", "--port", str(free_port), *arguments).code == 0
    assert app_folders.surveys() == tmp_path / "mine"
