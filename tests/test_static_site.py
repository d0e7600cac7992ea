"""The site is whole: every link is relative and leads to a file of it."""

import html
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from docs import static_site
from transformer_viz.viewer import plotly_js

_LINK = re.compile(r'(?:href|src|srcset)="([^"#]+)')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    docs = tmp_path_factory.mktemp("docs")
    (docs / "index.html").write_text("<p>docs</p>")
    static_site.main(made, docs)
    return made


def test_every_link_leads_to_a_file_of_the_site(folder: Path) -> None:
    links = _LINK.findall((folder / "index.html").read_text(encoding="utf-8"))
    assert {f"{name}.html" for name in static_site.MODELS} < set(links)
    for link in links:
        parts = urlsplit(link)
        assert not parts.scheme and not parts.netloc and not link.startswith("/")
        assert (folder / unquote(parts.path)).is_file(), link


def test_live_pages_share_one_copy_of_plotly(folder: Path) -> None:
    assert (folder / plotly_js.BUNDLE.name).stat().st_size > 2**20
    for name in static_site.MODELS:
        page = (folder / f"{name}.html").read_text(encoding="utf-8")
        assert f'src="{plotly_js.BUNDLE.name}"' in page
        policy = html.unescape(re.findall(r'Content-Security-Policy" content="([^"]+)"', page)[0])
        assert "default-src 'none'" in policy and "connect-src" not in policy


def test_the_folder_is_a_static_space(folder: Path) -> None:
    front = (folder / "README.md").read_text(encoding="utf-8").split("---")[1]
    settings = dict(line.split(": ", 1) for line in front.strip().splitlines())
    assert settings["sdk"] == "static"
    assert (folder / settings["app_file"]).is_file()
