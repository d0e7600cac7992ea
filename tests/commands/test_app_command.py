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
from transformer_viz.commands import app as app_command
from transformer_viz.readers import entries
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
    settings, trained = server_settings, server_settings.variable("trained_bytes")
    for name in (
        settings.HOSTS_VARIABLE,
        app_folders.SHARED_VARIABLE,
        app_folders.SHARED_MODELS_VARIABLE,
        settings.OPENS_VARIABLE,
    ):
        monkeypatch.setenv(name, "")
    for name in (app_folders.SURVEYS_VARIABLE, app_folders.LESSONS_VARIABLE, app_folders.MODULES_VARIABLE):
        monkeypatch.setenv(name, "")
    for name in (settings.NO_TRAINING_VARIABLE, trained):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return commands


@pytest.fixture
def app(cli, started):
    """`app("--shared", …)`: the command with a port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    return lambda *arguments: cli("app", "--port", port, *arguments)


def test_what_is_started(app, started, tmp_path):
    """In this process, which guards an app that goes on when its parent is stopped; and in the folder where the command was
    typed, whose files a module of one's own reads."""
    assert app().code == 0
    assert app("--address", "127.0.0.1", "--", "--server.headless", "true", "-v").code == 0
    folders, lines = zip(*started, strict=True)
    assert folders == (tmp_path, tmp_path)
    *run, port = lines[0][:-1]
    assert run == ["streamlit", "run", str(ROOT / "app.py")] and lines[0][-1] == "--server.address=localhost"
    assert lines[1] == [*run, port, "--server.address=127.0.0.1", "--server.headless", "true", "-v"]


def test_settings_travel_in_the_environment_which_the_server_inherits(app, started, monkeypatch, mistake):
    assert app("--allow-host", "Viz.example", "--allow-host", "*.b.example").code == 0
    assert server_settings.allowed_hosts() == ("viz.example", "*.b.example")
    assert server_settings.trains() and server_settings.limits().trained_bytes == 2 * 10**9
    assert app("--no-training", "--max-trained-bytes", "5000").code == 0
    assert not server_settings.trains() and server_settings.limits().trained_bytes == 5000
    assert len(started) == 2
    assert "name of a host" in mistake("app", "--allow-host", "http://viz.example")
    monkeypatch.setenv(server_settings.variable("run_seconds"), "many")
    assert server_settings.variable("run_seconds") in mistake("app")
    assert len(started) == 2


def test_relative_folders_are_seen_from_where_the_command_was_typed(app, mistake, started, monkeypatch, tmp_path):
    monkeypatch.setenv(app_folders.FOLDERS_VARIABLE, "mine")
    assert "no folder mine, given as --lessons" in mistake("app", "--lessons", "mine")
    (tmp_path / "mine").mkdir()
    assert app("--lessons", "mine").code == 0
    for name in (app_folders.LESSONS_VARIABLE, app_folders.FOLDERS_VARIABLE):
        assert os.environ[name] == str(tmp_path / "mine")


@needs("transformers")
def test_a_folder_with_a_model_is_known_on_every_page_and_opened(app, mistake, started, monkeypatch, tmp_path):
    mine = saved_models.save(tmp_path / "mine")
    monkeypatch.setenv(app_folders.MODELS_VARIABLE, os.pathsep.join(["", "more", "even/more"]))
    assert app("--model", "./mine").code == 0
    folders = [str(mine), *(f"{tmp_path}/{each}" for each in ("more", "even/more"))]
    assert os.environ[app_folders.MODELS_VARIABLE].split(os.pathsep) == folders
    assert opening.here().endswith("/?checkpoint=mine")
    (tmp_path / "empty").mkdir()
    assert "no model in" in mistake("app", "--model", "mine", "--model", "empty")
    (mine / "model.safetensors").unlink()
    assert "mine" in mistake("app", "--model", "mine")
    assert len(started) == 1


def test_an_address_where_it_cannot_listen_is_said(mistake, started):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        line = mistake("app", "--port", port, "--address", "127.0.0.1")
    assert port in line and "in use" in line and "--port" in line
    for address in ("nowhere.invalid", "a" * 300):
        assert "cannot listen" in mistake("app", "--port", port, "--address", address)
    assert not started


def test_without_streamlit(mistake, started, monkeypatch):
    monkeypatch.setattr(app_command, "find_spec", lambda name: None)
    assert "streamlit is not installed" in mistake("app")


@pytest.mark.parametrize(
    ("arguments", "is_shared", "shows_all"),
    [
        ("--address 127.0.0.1", False, True),
        ("--address 0.0.0.0", True, False),
        ("--shared", True, False),
        ("--allow-host viz.example", True, False),
        ("--shared --models cache", True, True),
    ],
)
def test_who_can_be_reached_by_others_shows_what_was_named(
    app, started, monkeypatch, tmp_path, arguments, is_shared, shows_all
):
    """Of surveys too: those of the folder in which the app was started are private, unless the folder was named."""
    assert app(*arguments.split()).code == 0
    assert (app_folders.is_shared(), app_folders.shows_all_models()) == (is_shared, shows_all)
    assert app_folders.surveys() == (None if is_shared else tmp_path / "surveys")
    monkeypatch.setenv(app_folders.SURVEYS_VARIABLE, "mine")
    monkeypatch.chdir(tmp_path)
    assert app(*arguments.split()).code == 0
    assert app_folders.surveys() == tmp_path / "mine"


def test_a_module_of_ones_own_file_is_opened(app, started, tmp_path):
    """By its name, once the command line has named it; a file that is not there is said before anything is started."""
    file = tmp_path / "mine.py"
    file.write_text("def make(): ...", encoding="utf-8")
    assert app("--module", f"{file}:make").code == 0
    assert os.environ[server_settings.OPENS_VARIABLE] == "mine"
    assert [entry.name for entry in entries() if entry.folder == file] == ["mine"]
    assert app().code == 0
    assert not [entry for entry in entries() if entry.folder == file], "what another start named is gone"
    for named, words in ((f"{tmp_path / 'none.py'}:make", "There is no file 'none.py'"), ("mine.py", "is no module")):
        done = app("--module", named)
        assert done.code == 2 and words in done.err
    assert len(started) == 2
