"""The files of `deploy/` say the same as each other, as the app, and as the page about them."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml
from streamlit.web.server.starlette import starlette_server_config

from tests.deploy import proxy
from transformer_viz import server_settings

ROOT = proxy.FILES.parent
UNIT = (proxy.FILES / "systemd/transformer-viz@.service").read_text(encoding="utf-8")
ENVIRONMENT = (proxy.FILES / "transformer-viz.env").read_text(encoding="utf-8")
SERVERS = (proxy.FILES / "nginx/conf.d/transformer-viz.conf").read_text(encoding="utf-8")
SITE = (proxy.FILES / "nginx/snippets/transformer-viz.conf").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/deploy.md").read_text(encoding="utf-8")


def test_the_app_knows_every_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in comments too."""
    variables = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", ENVIRONMENT, flags=re.MULTILINE))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert set(variables) == {server_settings.HOSTS_VARIABLE, server_settings.NO_TRAINING_VARIABLE, "OMP_NUM_THREADS"}
    assert server_settings.allowed_hosts() == ("viz.example.org",)
    assert not server_settings.trains()


def test_each_server_is_in_nginx_twice_and_in_caddy_once() -> None:
    caddy = (proxy.FILES / "caddy/Caddyfile").read_text(encoding="utf-8")
    for port in proxy.PORTS:
        lines = [line.strip() for line in SERVERS.splitlines() if port in line]
        assert lines == [f"server 127.0.0.1:{port} max_fails=0;", f"{port} 127.0.0.1:{port};"]
        assert caddy.count(f"127.0.0.1:{port}") == 1
        assert f"transformer-viz@{port}" in PAGE


def test_each_server_is_the_command_at_its_port_for_this_machine_alone() -> None:
    found = re.search(r"^ExecStart=/opt/transformer-viz/bin/transformer-viz (.+)$", UNIT, flags=re.MULTILINE)
    assert found
    assert shlex.split(found[1]) == ["app", "--shared", "--address", "127.0.0.1", "--port", "%i"]
    assert "StateDirectory=transformer-viz" in UNIT and "XDG_DATA_HOME=/var/lib" in UNIT


def test_the_proxy_takes_what_the_app_takes_and_waits_longer_than_the_app_is_silent() -> None:
    with (ROOT / ".streamlit/config.toml").open("rb") as file:
        largest = tomllib.load(file)["server"]["maxUploadSize"]
    assert max(map(int, re.findall(r"client_max_body_size (\d+)m", SITE))) == largest + 1
    # Streamlit asks a page that says nothing whether it is still there.
    least = 2 * starlette_server_config.DEFAULT_WEBSOCKET_PING_INTERVAL
    assert all(int(seconds) > least for seconds in re.findall(r"stream\$ {[^}]+proxy_read_timeout (\d+)s", SITE))


def test_the_image_has_what_the_package_is_made_of() -> None:
    lines = (proxy.FILES / "Containerfile").read_text(encoding="utf-8")
    copied = {name for line in re.findall(r"^COPY (.+) \S+$", lines, flags=re.MULTILINE) for name in line.split()}
    assert all((ROOT / name).exists() for name in copied)
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    licences = project["project"]["license-files"]
    needed = {*wheel["only-include"], *wheel["force-include"], "README.md", "hatch_build.py", *licences}
    assert {Path(name).parts[0] for name in needed} <= copied


def test_a_space_answers_where_its_page_looks() -> None:
    _, front, _ = (proxy.FILES / "space/README.md").read_text(encoding="utf-8").split("---\n", 2)
    about = yaml.safe_load(front)
    image = (proxy.FILES / "space/Dockerfile").read_text(encoding="utf-8")
    assert about["sdk"] == "docker" and f"--port {about['app_port']} " in image
    assert "useradd --uid 1000" in image and "\nUSER 1000\n" in image
    assert f"{server_settings.FRAMED_BY_VARIABLE}=huggingface.co" in image


def test_compose_starts_the_servers_of_nginx_with_the_bounds_of_the_unit() -> None:
    described = yaml.safe_load((proxy.FILES / "compose.yaml").read_text(encoding="utf-8"))
    nginx = described["services"].pop("proxy")
    assert all((proxy.FILES / mounted.split(":")[0]).is_file() for mounted in nginx["volumes"])
    ports = []
    for server in described["services"].values():
        *address, port = server["command"]
        assert address == ["--address", "127.0.0.1", "--port"] and server["network_mode"] == "service:proxy"
        ports.append(port)
        assert (proxy.FILES / server["build"]["context"] / server["build"]["dockerfile"]).is_file()
        bounds = {"MemoryMax": server["mem_limit"].upper(), "TasksMax": server["pids_limit"]}
        bounds |= {"LimitNOFILE": server["ulimits"]["nofile"]}
        assert all(f"\n{name}={bound}\n" in UNIT for name, bound in bounds.items())
        assert {server_settings.HOSTS_VARIABLE, server_settings.NO_TRAINING_VARIABLE} < set(server["environment"])
    assert tuple(ports) == proxy.PORTS


def test_every_container_of_compose_may_write_nowhere_and_has_no_rights_that_it_does_not_need() -> None:
    services = yaml.safe_load((proxy.FILES / "compose.yaml").read_text(encoding="utf-8"))["services"]
    for name, service in services.items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges"]
        assert "cap_add" not in service or name == "proxy"


def test_the_page_names_every_file() -> None:
    for file in proxy.FILES.rglob("*"):
        if file.is_file() and file.suffix != ".pyc":
            assert f"deploy/{file.relative_to(proxy.FILES).as_posix()}" in PAGE
