"""nginx and Caddy before servers on this machine, with the very files of `deploy/`; the addresses alone are others."""

import re
import shutil
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import served

FILES = served.ROOT / "deploy"
PORTS = ("8501", "8502")
"""Those of the servers in the files."""
_NGINX = """
daemon off;
error_log stderr crit;
pid nginx.pid;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include conf.d/*.conf;
    server {{
        listen 127.0.0.1:{port};
        include snippets/transformer-viz.conf;
    }}
}}
"""


def program(name: str) -> str | None:
    """Where this machine has it, or None; Debian has nginx where only root looks."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin")


@contextmanager
def nginx(ports: Sequence[int]) -> Generator[served.Server]:
    """Runs nginx before the servers at these ports of 127.0.0.1; ends it."""
    port = served.free_port()
    with TemporaryDirectory() as temporary:
        # Started by root, it works as nobody.
        Path(temporary).chmod(0o711)
        for folder in ("conf.d", "snippets"):
            shutil.copytree(FILES / "nginx" / folder, Path(temporary, folder))
        servers = Path(temporary, "conf.d/transformer-viz.conf")
        servers.write_text(_a_line_each(servers.read_text(encoding="utf-8"), ports), encoding="utf-8")
        Path(temporary, "nginx.conf").write_text(_NGINX.format(port=port), encoding="utf-8")
        with _running("nginx", ["-p", temporary, "-c", "nginx.conf", "-e", "stderr"], port) as running:
            yield running


@contextmanager
def caddy(ports: Sequence[int]) -> Generator[served.Server]:
    """The same with Caddy, without a certificate."""
    port = served.free_port()
    with TemporaryDirectory() as temporary:
        text = (FILES / "caddy/Caddyfile").read_text(encoding="utf-8")
        text = re.sub(
            r"^viz\.example\.org {\n\ttls .+$", f"http://localhost:{port} {{\n\tbind 127.0.0.1", text, flags=re.MULTILINE
        )
        addresses = " ".join(f"127.0.0.1:{each}" for each in PORTS)
        file = Path(temporary, "Caddyfile")
        file.write_text(text.replace(addresses, " ".join(f"127.0.0.1:{each}" for each in ports)), encoding="utf-8")
        with _running("caddy", ["run", "--adapter", "caddyfile", "--config", str(file)], port) as running:
            yield running


@contextmanager
def _running(name: str, arguments: Sequence[str], port: int) -> Generator[served.Server]:
    found = program(name)
    assert found, f"{name} is not installed"
    url = f"http://localhost:{port}"
    process = subprocess.Popen([found, *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        served.wait_for(f"{url}/_stcore/health")
        yield served.Server(url, process.pid)
    finally:
        process.terminate()
        process.wait(timeout=20)


def _a_line_each(text: str, ports: Sequence[int]) -> str:
    """The lines of the first server once for each port, in the place of those of all."""
    first, *others = PORTS
    lines: list[str] = []
    for line in text.splitlines():
        if first in line:
            lines += [line.replace(first, str(port)) for port in ports]
        elif not any(other in line for other in others):
            lines.append(line)
    return "\n".join(lines) + "\n"
