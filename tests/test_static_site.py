"""The site is whole: every link is relative and leads to a file of it."""

import html
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import transformer_viz as tv
from docs import static_site
from docs.demonstrations import DEMONSTRATIONS, Demonstration
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
    pages = [folder / f"{name}.html" for name in ("index", "demonstrations", *static_site.MODELS)]
    links = {link for page in pages for link in _LINK.findall(page.read_text(encoding="utf-8"))}
    assert {page.name for page in pages} | {one.link.partition("#")[0] for one in DEMONSTRATIONS} <= {*links}
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


@pytest.mark.parametrize("one", DEMONSTRATIONS, ids=lambda one: one.title)
def test_a_demonstration_is_of_what_the_model_does(one: Demonstration) -> None:
    trace = tv.decode(tv.load_checkpoint(one.model, device="cpu"), one.text)
    row = trace.attentions[one.kind].head(one.layer - 1, one.head - 1)[one.step - 1]
    tokens = trace.source_tokens if one.kind == "cross" else trace.target_tokens
    assert (tokens[int(row.argmax())], trace.output_tokens[one.step - 1]) == (one.looks, one.writes)
    assert row.max() > 0.5


def test_a_link_to_any_page_has_a_picture_at_the_address_that_is_given(tmp_path: Path) -> None:
    static_site.main(tmp_path, address="https://here.example/viz/")
    for page in ("index", "demonstrations", *static_site.MODELS):
        found = re.findall(r'property="og:image" content="([^"]+)"', (tmp_path / f"{page}.html").read_text(encoding="utf-8"))
        assert found == ["https://here.example/viz/crossing-light.png"], page
    assert (tmp_path / "crossing-light.png").is_file()
