"""The site's lessons, opened from its folder without a server: a card beside a live page that shows what it speaks of."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from docs import lesson_pages, static_site
from tests.browser.accessible import faults

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STEP = {"en": "Step {} of", "zh": "第 {} 步"}
"""How the sentence of the live page begins."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    static_site.main(made)
    return made


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def phone(browser: Browser, folder: Path) -> Iterator[Page]:
    """A page of a phone, whose relative addresses are those of the site on a server."""
    with ThreadingHTTPServer(("localhost", 0), partial(_Quiet, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        context = browser.new_context(
            base_url=f"http://localhost:{server.server_port}",
            viewport={"width": 390, "height": 844},
            has_touch=True,
            is_mobile=True,
            reduced_motion="reduce",
        )
        yield context.new_page()
        context.close()
        server.shutdown()


@pytest.fixture
def page(browser: Browser) -> Page:
    return browser.new_context(offline=True, viewport={"width": 1280, "height": 900}, reduced_motion="reduce").new_page()


def _focused(page: Page) -> str:
    return page.evaluate("document.activeElement.name || document.activeElement.dataset.part || document.activeElement.tagName")


def _tab_from_heading(page: Page, name: str) -> None:
    """The keyboard stands on the card, and one Tab leads there."""
    assert _focused(page) == "title"
    page.keyboard.press("Tab")
    assert _focused(page) == name


def _titles(language: str = "en") -> list[str]:
    """The titles of the first lesson's cards."""
    return [step.title for step in lesson_pages.lessons(language)[0].steps]


@pytest.mark.parametrize("language", lesson_pages.LANGUAGES)
def test_the_first_lesson_is_gone_through_by_keyboard(page: Page, folder: Path, language: str) -> None:
    lesson = lesson_pages.lessons(language)[0]
    cards = lesson_pages.lesson_data(lesson, language)["cards"]
    page.goto((folder / lesson.page_name(language)).as_uri())
    live = page.frame_locator("[data-part=frame]")
    for number, card in enumerate(cards):
        expect(page.get_by_role("heading", level=1)).to_have_text(card["title"])
        asked = card.get("ask")
        if asked:
            if "most" in card["place"].get("before", ""):
                expect(live.locator("[data-part=output] .token")).to_have_count(asked["row"] - 1)
            _tab_from_heading(page, "answer")
            if asked["number"] is None:
                page.keyboard.press("Space")
                for _ in range(asked["right"][0]):
                    page.keyboard.press("ArrowDown")
            else:
                page.keyboard.type(f"{asked['number']:.2f}".replace(".", ","))
            page.keyboard.press("Enter")
            expect(page.locator(".judged.right")).to_contain_text(asked["because"].replace("`", ""))
            expect(live.locator("[data-part=sentence]")).to_contain_text(STEP[language].format(asked["row"]))
        if number < len(cards) - 1:
            if not asked:
                _tab_from_heading(page, "next")
            # After an answer the keyboard stands there already.
            assert _focused(page) == "next"
            page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=lesson_pages.lessons(language)[1].title)).to_be_visible()
    page.context.close()


def test_a_wrong_answer_and_a_skipped_one_are_told_what_the_model_does(page: Page, folder: Path) -> None:
    page.goto((folder / "lesson-map.html").as_uri() + "#3")
    page.get_by_role("button", name="Hint").click()
    expect(page.locator("[data-part=hints] li")).to_have_count(1)
    page.get_by_label("7·s", exact=True).check()
    page.get_by_role("button", name="Answer").click()
    expect(page.locator(".judged.wrong")).to_contain_text("You: 7·s. It: 10·h 91 %.")
    page.goto((folder / "lesson-map.html").as_uri() + "#4")
    page.get_by_label("Row 5 gives").fill("much")
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_role("alert")).to_contain_text("no number")
    page.get_by_role("button", name="Skip").click()
    expect(page.locator(".judged.skipped")).to_contain_text("It: 0.24.")
    page.context.close()


def test_who_presses_faster_than_the_model_runs_sees_what_the_last_card_speaks_of(page: Page, folder: Path) -> None:
    page.goto((folder / "lesson-map.html").as_uri() + "#5")
    sentence = page.frame_locator("[data-part=frame]").locator("[data-part=sentence]")
    expect(sentence).to_contain_text("Step 9 of 9")
    # The answer's run has ten steps to show, and is still being made as the next card asks for the twelfth.
    page.evaluate("for (const name of ['skip', 'next']) document.querySelector(`[data-part=${name}]`).click()")
    expect(page.get_by_role("heading", level=1)).to_have_text(_titles()[5])
    expect(sentence).to_contain_text("of 12")
    expect(sentence).to_contain_text("Step 12 of 12")
    page.context.close()


def test_the_next_card_undoes_what_somebody_changed_in_the_picture(page: Page, folder: Path) -> None:
    page.goto((folder / "lesson-map.html").as_uri() + "#2")
    live = page.frame_locator("[data-part=frame]")
    live.get_by_role("button", name="Switch this head off").click()
    live.get_by_text("How it writes", exact=True).click()
    live.locator("[data-option=strategy]").select_option("sample")
    expect(live.locator("[data-part=changes] button")).to_have_count(1)
    page.get_by_role("button", name="Next").click()
    expect(live.locator("[data-part=sentence]")).to_contain_text("Step 2 of 2")
    expect(live.locator("[data-part=changes] button")).to_have_count(0)
    expect(live.locator("[data-option=strategy]")).to_have_value("greedy")
    page.context.close()


def test_the_browsers_way_back_leads_to_the_card_before_and_its_picture(page: Page, folder: Path) -> None:
    page.goto((folder / "lesson-map.html").as_uri() + "#8")
    source = page.frame_locator("[data-part=frame]").locator("[data-part=text]")
    expect(source).to_have_value("reversethis")
    page.get_by_role("button", name="Next").click()
    expect(source).to_have_value("siebenhundertdreiundzwanzig")
    page.evaluate("history.back()")
    expect(page.get_by_role("heading", level=1)).to_have_text(_titles()[7])
    expect(source).to_have_value("reversethis")
    page.context.close()


def test_a_page_that_comes_late_does_not_take_the_place_of_the_one_gone_back_to(phone: Page) -> None:
    held: list[Route] = []
    phone.route("**/numbers.html", lambda route: held.append(route))
    phone.goto("/lesson-map.html#8")
    source = phone.frame_locator("[data-part=frame]").locator("[data-part=text]")
    expect(source).to_have_value("reversethis")
    phone.get_by_role("button", name="Next").click()
    expect(phone.get_by_role("heading", level=1)).to_have_text(_titles()[8])
    phone.get_by_role("button", name="Back").click()
    expect(phone.get_by_role("heading", level=1)).to_have_text(_titles()[7])
    for route in held:
        route.continue_()
    # Nothing says that a page does not come.
    phone.wait_for_timeout(1500)
    expect(source).to_have_value("reversethis")
    assert [frame.url.partition("#")[0].rpartition("/")[2] for frame in phone.frames] == ["lesson-map.html", "reverse.html"]


def test_a_hint_leaves_what_is_typed_and_the_picture_and_the_language_leaves_the_card(page: Page, folder: Path) -> None:
    page.goto((folder / "lesson-map.html").as_uri() + "#4")
    sentence = page.frame_locator("[data-part=frame]").locator("[data-part=sentence]")
    expect(sentence).to_contain_text("Step 4 of 4")
    page.frame_locator("[data-part=frame]").get_by_label("First step").click()
    page.get_by_label("Row 5 gives").fill("0.2")
    hint = page.get_by_role("button", name="Hint")
    while hint.is_visible():
        hint.focus()
        page.keyboard.press("Enter")
    expect(page.get_by_label("Row 5 gives")).to_have_value("0.2")
    expect(sentence).to_contain_text("Step 1 of 4")
    assert _focused(page) == "title"
    page.get_by_role("link", name="中文").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(_titles("zh")[3])
    page.context.close()


def test_where_a_card_needs_the_program_it_says_so(page: Page, folder: Path) -> None:
    page.goto((folder / "lesson-training.html").as_uri())
    expect(page.locator("[data-part=needs]")).to_be_visible()
    expect(page.locator("[data-part=stage]")).to_be_hidden()
    page.context.close()


def test_pages_keep_nobody_out(page: Page, folder: Path) -> None:
    for name in ("index", "lessons", "lesson-map", "lesson-training", "attention", "attention-zh", "sheet-en", "sheet-zh"):
        page.goto((folder / f"{name}.html").as_uri())
        # All of it in sight, since contrast is measured from what is to be seen.
        page.set_viewport_size({"width": 1280, "height": 4000})
        assert not list(faults(page)), name
    page.context.close()


def test_on_a_phone_the_picture_stands_below_the_card_in_one_piece(phone: Page) -> None:
    phone.goto("/lesson-map.html#2")
    live = phone.frame_locator("[data-part=frame]")
    expect(live.locator("[data-part=focus].js-plotly-plot")).to_be_visible()
    phone.wait_for_function(
        """() => {
          const frame = document.querySelector("[data-part=frame]"), { clientWidth: width, clientHeight: height } = frame;
          const inside = frame.contentDocument.documentElement;
          return height > 844 && inside.scrollHeight <= height && inside.scrollWidth <= width;
        }"""
    )
    phone.set_viewport_size({"width": 1280, "height": 720})
    phone.wait_for_function("document.querySelector('[data-part=frame]').clientHeight === 720")


def test_on_a_phone_a_charts_buttons_come_with_a_tap_and_never_over_its_rows(phone: Page) -> None:
    phone.goto("/")
    map_ = phone.locator("[data-part=focus].js-plotly-plot")
    buttons = map_.locator(".modebar")
    expect(buttons).to_have_css("opacity", "0")
    map_.tap(position={"x": 200, "y": 150})
    expect(buttons).to_have_css("opacity", "1")
    below, of_map = buttons.bounding_box(), map_.bounding_box()
    assert below is not None and of_map is not None
    assert of_map["y"] + of_map["height"] / 2 < below["y"]
    assert below["y"] + below["height"] <= of_map["y"] + of_map["height"]


def test_on_a_small_laptop_the_whole_map_is_beside_the_card(page: Page, folder: Path) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto((folder / "lesson-map.html").as_uri() + "#2")
    map_ = page.frame_locator("[data-part=frame]").locator("[data-part=focus].js-plotly-plot")
    expect(map_).to_be_visible()
    box = map_.bounding_box()
    # The last pixels are the margin below the words of the axis.
    assert box is not None and box["y"] + box["height"] <= 720 + 12
    page.context.close()
