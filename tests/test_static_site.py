"""The site is whole: every link is relative and leads to a file of it."""

import html
import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import transformer_viz as tv
from docs import lesson_pages, static_site
from docs.demonstrations import DEMONSTRATIONS, Demonstration
from transformer_viz.learn.lesson import Lesson
from transformer_viz.viewer import plotly_js

_LINK = re.compile(r'(?:href|src|srcset)="([^"#]+)')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    docs = tmp_path_factory.mktemp("docs")
    (docs / "index.html").write_text("<p>docs</p>")
    static_site.main(made, docs)
    return made


def test_what_it_takes_is_said_and_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    for words, code in ((["--help"], 0), ([], 2)):
        with pytest.raises(SystemExit) as ended:
            static_site.run(words)
        assert ended.value.code == code
    said = capsys.readouterr()
    assert "where the site will be" in said.out and "required: folder" in said.err


def test_every_link_leads_to_a_file_of_the_site(folder: Path) -> None:
    pages = list(folder.glob("*.html"))
    links = {link for page in pages for link in _LINK.findall(page.read_text(encoding="utf-8"))}
    # A card leads to its model by its script.
    links |= {f"{model}.html" for model in lesson_pages.models()}
    assert {page.name for page in pages} | {one.link.partition("#")[0] for one in DEMONSTRATIONS} <= {*links}
    for link in links:
        parts = urlsplit(link)
        assert not parts.scheme and not parts.netloc and not link.startswith("/")
        assert (folder / unquote(parts.path)).is_file(), link


def test_live_pages_share_one_copy_of_plotly(folder: Path) -> None:
    assert (folder / plotly_js.BUNDLE.name).stat().st_size > 2**20
    for name in ("index", *static_site.MODELS, *lesson_pages.models()):
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
    for page in ("index", "demonstrations", "lessons-zh", "lesson-map", "attention", *static_site.MODELS):
        found = re.findall(r'property="og:image" content="([^"]+)"', (tmp_path / f"{page}.html").read_text(encoding="utf-8"))
        assert found == ["https://here.example/viz/crossing-light.png"], page
    assert (tmp_path / "crossing-light.png").is_file()
    sheet = (tmp_path / "sheet-zh.html").read_text(encoding="utf-8")
    assert all(f"https://here.example/viz/{lesson.page_name('zh')}" in sheet for lesson in lesson_pages.lessons("zh"))


def test_the_first_page_runs_a_model_and_says_nothing_of_what_is_not_published(folder: Path) -> None:
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert 'data-part="play"' in page and 'id="engine"' in page
    assert "pip install" not in page and "example.org" not in page


LESSONS = [(lesson, language) for language in lesson_pages.LANGUAGES for lesson in lesson_pages.lessons(language)]


@pytest.mark.parametrize(("lesson", "language"), LESSONS, ids=lambda one: one if isinstance(one, str) else one.name)
def test_a_lesson_has_all_its_cards_with_its_own_words(folder: Path, lesson: Lesson, language: str) -> None:
    page = (folder / lesson.page_name(language)).read_text(encoding="utf-8")
    cards = json.loads(re.findall(r'id="data">(.+?)</script>', page)[0])["cards"]
    for step, card in zip(lesson.steps, cards, strict=True):
        said = "".join(piece.text for paragraph in step.text for piece in paragraph)
        assert (card["title"], "".join(text for paragraph in card["text"] for _, text in paragraph)) == (step.title, said)
        assert card["hints"] == list(step.hints)
        assert ("ask" in card) == (step.ask is not None)
        if step.ask and step.ask.because:
            assert card["ask"]["because"] == step.ask.because
        assert card["place"] or card["needsApp"]


@pytest.mark.parametrize("lesson", lesson_pages.lessons("en"), ids=lambda one: one.name)
def test_what_a_question_asks_for_is_not_computed_before_it_is_answered(lesson: Lesson) -> None:
    for step, card in zip(lesson.steps, lesson_pages.lesson_data(lesson, "en")["cards"], strict=True):
        place = card["place"]
        if step.ask is None or place is None:
            continue
        before = dict(part.split("=") for part in place.get("before", "").split("&") if part)
        if step.ask.kind in ("writes", "looks-most", "number") and not place.get("covered"):
            assert int(before["most"]) < card["ask"]["row"]
        elif step.ask.kind == "masked":
            assert place["covered"] == "covered-masks"
        else:
            assert place.get("covered") or before["answer"] == "hidden"
