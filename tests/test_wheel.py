"""The package as people install it: it carries the app and the shipped checkpoints, and is all that an empty folder needs.

What the wheel of the checkout does, that of the source distribution does too: they are the same to the byte.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from websockets.sync.client import connect

import transformer_viz as tv
from benchmarks import served
from tests import inside
from tests.needs import needs

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = Path(".streamlit", "config.toml")

# One process of several builds it, once.
pytestmark = [needs("hatchling"), pytest.mark.xdist_group("wheel")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `pip install .` builds it."""
    from hatchling.build import build_wheel

    folder = tmp_path_factory.mktemp("wheel")
    with contextlib.chdir(ROOT):
        return folder / build_wheel(str(folder))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from hatchling.build import build_sdist

    folder = tmp_path_factory.mktemp("sdist")
    with contextlib.chdir(ROOT):
        return folder / build_sdist(str(folder))


@dataclass(frozen=True)
class Machine:
    """An empty folder, and a Python that has the wheel's package and no checkout."""

    empty: Path
    site: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        return {**inherited, "PYTHONPATH": str(self.site), "HOME": str(self.home)}

    def python(self, *arguments: str) -> str:
        """Standard output of a Python that ends well."""
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.empty, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def machine(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    folder = tmp_path_factory.mktemp("machine")
    machine = Machine(*(folder / name for name in ("empty", "site", "home")))
    machine.empty.mkdir()
    machine.home.mkdir()
    machine.python("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(machine.site), str(wheel))
    return machine


def files_below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def test_the_wheel_holds_the_package_the_app_and_the_checkpoints_and_nothing_else(wheel: Path) -> None:
    package, shipped = Path("transformer_viz"), Path("transformer_viz", "shipped")
    wanted = {path.relative_to(ROOT).as_posix(): path for path in files_below(ROOT / package)}
    beside = [ROOT / "app.py", ROOT / SETTINGS, *files_below(ROOT / "checkpoints")]
    wanted |= {(shipped / path.relative_to(ROOT)).as_posix(): path for path in beside}
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert found == set(wanted)
        assert all(archive.read(name) == path.read_bytes() for name, path in wanted.items())
    assert "transformer_viz/py.typed" in found
    assert wheel.stat().st_size < 45e6


@pytest.mark.slow
def test_the_source_distribution_makes_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    build = "from hatchling.build import build_wheel; print(build_wheel('..'))"
    done = subprocess.run([sys.executable, "-c", build], cwd=source, capture_output=True, text=True, check=True)
    assert (tmp_path / done.stdout.strip()).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize(
    "tool",
    [pytest.param("twine", marks=needs("twine")), pytest.param("check_wheel_contents", marks=needs("check_wheel_contents"))],
)
def test_a_package_index_takes_it(wheel: Path, sdist: Path, tool: str) -> None:
    asked = ["check", "--strict", str(wheel), str(sdist)] if tool == "twine" else [str(wheel)]
    done = subprocess.run([sys.executable, "-m", tool, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_on_its_page_links_and_pictures_of_readme_lead_into_the_repository(wheel: Path) -> None:
    """The page of a package index has no repository beside it, so a relative address leads nowhere."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    source = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))["Source"]
    page, readme = metadata.get_payload(), (ROOT / "README.md").read_text(encoding="utf-8")
    assert isinstance(page, str)
    addresses = re.findall(r"\]\(([^)\s]+)\)", page)
    assert len(addresses) == len(re.findall(r"\]\(([^)\s]+)\)", readme)) > 10
    tag = re.escape(f"v{tv.__version__}")
    for address in addresses:
        inside = re.fullmatch(rf"{re.escape(source)}/(raw|blob)/{tag}/([^#]+)(#.*)?", address)
        assert inside or address.startswith(("http", "#")), address
        assert inside is None or (ROOT / inside[2]).exists(), address
    for picture in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", page):
        assert picture.startswith(f"{source}/raw/"), picture


def test_the_wheel_says_its_version_licence_and_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        about = {name.rpartition("/")[2]: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    metadata = Parser().parsestr(about["METADATA"])
    assert (metadata["Version"], metadata["License-Expression"]) == (tv.__version__, "MIT")
    assert about["LICENSE"] == (ROOT / "LICENSE").read_text(encoding="utf-8")
    of_plotly = ROOT / "transformer_viz" / "viewer" / "plotly" / "LICENSE.txt"
    assert about["LICENSE.txt"] == of_plotly.read_text(encoding="utf-8") and "Plotly" in about["LICENSE.txt"]
    assert "transformer-viz = transformer_viz.__main__:run" in about["entry_points.txt"]


def test_an_editable_install_is_the_checkout(tmp_path: Path) -> None:
    from hatchling.build import build_editable

    with contextlib.chdir(ROOT), zipfile.ZipFile(tmp_path / build_editable(str(tmp_path))) as archive:
        archive.extractall(tmp_path / "site")
    asked = f"import site; site.addsitedir({str(tmp_path / 'site')!r}); from transformer_viz import app_folders as p; "
    asked += "print(p.ROOT, p.trained(), p.trained_as_typed())"
    done = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{ROOT} {ROOT / 'trained'} trained\n"


COMMANDS = """
from pathlib import Path
from transformer_viz import app_folders
from transformer_viz.commands import main
train = "train german-toy --layers 1 --d-model 8 --heads 2 --d-ff 8 --steps 2 --samples 2 --device cpu"
(Path.home() / "texts.txt").write_text("abc")
home = Path.home()
survey = f"survey --checkpoint reverse-small --texts {home}/texts.txt -o {home}/survey --workers 1 --verdict-texts 0"
for command in ("decode hello --json", train, survey, "checkpoints --json", "checkpoints"):
    assert main(command.split()) == 0
print(app_folders.trained_as_typed())
"""


def test_from_an_empty_folder_it_decodes_trains_surveys_and_lists(machine: Machine) -> None:
    command = machine.site / "bin" / "transformer-viz"
    assert machine.python(str(command), "--version") == f"transformer_viz {tv.__version__}\n"
    lines = machine.python("-c", COMMANDS).splitlines()
    decoded, listed = (json.loads(line) for line in lines if line.startswith("{"))
    assert decoded["text"] == "olleh"
    shipped = {folder.name for folder in (ROOT / "checkpoints").iterdir()}
    assert {row["name"] for row in listed["checkpoints"]} == {*shipped, "german-toy-pre-norm-0"}
    assert not any(row["error"] for row in listed["checkpoints"])
    # Whatever the system's data folder is, it is this user's own.
    trained = Path(listed["trained_folder"])
    assert trained.is_relative_to(machine.home)
    assert (trained / "german-toy-pre-norm-0" / "model.safetensors").is_file()
    assert (machine.home / "survey" / "summary.json").is_file()
    assert lines[-2] == f"what you train goes to {trained}"
    assert lines[-1] == f"~/{trained.relative_to(machine.home).as_posix()}"
    assert not list(machine.empty.iterdir())


@pytest.mark.slow
def test_the_app_decodes_and_looks_as_its_settings_say(machine: Machine) -> None:
    """What a browser is told: the session's settings first, then the page."""
    rerun = BackMsg(rerun_script=ClientState()).SerializeToString()
    # A first visitor is asked before the answer is shown.
    ((name, value),) = inside.WITHOUT_A_QUESTION.items()
    cookie = {"Cookie": f"{name}={value}"}
    said = b""
    with (
        served.server(environment=machine.environment, folder=machine.empty) as server,
        connect(
            f"{server.url.replace('http', 'ws')}/_stcore/stream", max_size=None, additional_headers=cookie, close_timeout=0.2
        ) as browser,
    ):
        browser.send(rerun)
        while b"sihtesrever" not in said:
            message = browser.recv(timeout=60)
            assert isinstance(message, bytes)
            said += message
    primary = tomllib.loads((ROOT / SETTINGS).read_text(encoding="utf-8"))["theme"]["light"]["primaryColor"]
    assert primary.encode() in said
