"""Lessons in a real browser: lesson 1 by keyboard, what a question hides, and what reload and wandering keep."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

import transformer_viz as tv
from tests.browser.accessible import faults
from tests.browser.charts import at_rest
from tests.browser.told import SENT, told, weights_from
from tests.needs import slow
from transformer_viz.learn.lesson import LESSONS, Ask, Lesson, read_lessons
from transformer_viz.learn.links import Link
from transformer_viz.learn.points import POINTS
from transformer_viz.learn.questions import COVERS
from transformer_viz.terms import MISTAKE_TITLES
from transformer_viz.trace.trace import Trace
from transformer_viz.views import pages, path

pytestmark = pytest.mark.browser
CARD = ".st-key-lesson-card"


@pytest.fixture(scope="module")
def lessons() -> dict[str, Lesson]:
    return {lesson.name: lesson for lesson in read_lessons(LESSONS / "en")[0]}


def open_step(page: Page, server: str, lesson: Lesson, number: int) -> None:
    link = lesson.start_of(number - 1)
    assert link is not None
    path = "" if link.page == "explore" else link.page
    page.goto(f"{server}/{path}?{urlencode({**link.values, 'lesson': f'{lesson.name}.{number}'})}")
    card(page).get_by_text(f"card {number} of {len(lesson.steps)}").wait_for()
    at_rest(page)


def card(page: Page) -> Locator:
    return page.locator(CARD)


def press(page: Page, place: Locator, key: str = "Enter") -> None:
    """By keyboard alone: the Tab key until it is there, then this key."""
    place.wait_for()
    for _ in range(400):
        if place.evaluate("(one) => one.matches(':focus, :focus-within')"):
            page.keyboard.press(key)
            at_rest(page)
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {place}")


def button(page: Page, name: str) -> Locator:
    return card(page).get_by_role("button", name=name, exact=True)


def choose(page: Page, option: str) -> None:
    """A cell of the row that is covered, by the arrow keys, and Look."""
    row = page.get_by_role("radiogroup").and_(page.locator(".asked-cells"))
    names = [str(cell.get_attribute("aria-label")) for cell in row.get_by_role("radio").all()]
    press(page, row, "Home")
    for _ in range(names.index(option)):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(row.get_by_role("radio", name=option)).to_be_checked()
    expect(card(page)).to_contain_text(f"Your flag: {option}.")
    press(page, button(page, "Look"))


def expect_said(page: Page, words: str) -> None:
    expect(card(page).locator('[role="status"]').first).to_contain_text(words)


@pytest.mark.slow
def test_lesson_one_by_keyboard_alone(page: Page, server: str) -> None:
    page.context.clear_cookies()
    page.goto(server)
    at_rest(page)
    press(page, page.locator(".ways button").get_by_text("s", exact=True))
    expect(page.locator("[data-part=sentence]")).to_contain_text("Right. Step 1 of 12")
    press(page, page.get_by_role("button", name="go on with lesson 1"))
    expect(card(page).get_by_role("heading")).to_have_text("A row for each step")
    # A thing to do, by the player's own keys.
    page.keyboard.press("ArrowRight")
    expect(card(page)).to_contain_text("✓ Done")
    press(page, button(page, "Next"))
    choose(page, "2·r")
    expect_said(page, "Not so. You: 2·r. It: 10·h")
    press(page, button(page, "Next"))
    press(page, card(page).get_by_role("textbox"), "0")
    page.keyboard.type(",24")
    page.keyboard.press("Enter")
    expect_said(page, "Right. You: 0.24")
    press(page, button(page, "Next"))
    for hint in range(3):
        press(page, button(page, "Hint"))
        expect(card(page).locator(".st-key-lesson-hints p")).to_have_count(hint + 1)
    press(page, button(page, "Skip"))
    expect(card(page)).to_contain_text("Skipped. It: 3·e")
    press(page, button(page, "Next"))
    press(page, button(page, "Next"))
    # A word of one's own, in the middle of the lesson.
    press(page, page.get_by_label("Source text"), "ControlOrMeta+a")
    page.keyboard.type("planet")
    page.keyboard.press("Enter")
    expect(card(page)).to_contain_text("✓ Done")
    at_rest(page)
    choose(page, "6·e")
    expect_said(page, "Right.")
    for _ in range(2):
        press(page, button(page, "Next"))
    expect(card(page)).to_contain_text("card 9 of 9")
    choose(page, "6·zwanzig")
    expect_said(page, "Right.")
    press(page, button(page, "All lessons"))
    expect(page.get_by_role("heading", name="Learn")).to_have_count(1)
    expect(card(page)).to_have_count(0)
    # A question was skipped, and two things were not done. The browser remembers the rest.
    page.goto(f"{server}/learn")
    expect(page.locator(".st-key-lesson-map").get_by_role("img", name="Done: 6 / 9")).to_be_visible()
    expect(page.locator(".st-key-open-map")).to_contain_text("Continue at card 5")


def on_heading(page: Page, words: str) -> None:
    """The keyboard stands on the card of these words, and the page has not moved."""
    expect(card(page)).to_contain_text(words)
    expect(card(page).get_by_role("heading")).to_be_focused()


def focused(page: Page, tabs: int = 1) -> str:
    """What this many Tabs lead to, in words."""
    for _ in range(tabs):
        page.keyboard.press("Tab")
    return page.evaluate("document.activeElement.textContent.trim() || document.activeElement.ariaLabel")


@pytest.mark.slow
def test_the_keyboard_stands_on_each_card_and_one_tab_leads_on(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{server}/learn")
    at_rest(page)
    page.locator(".st-key-open-map").get_by_role("button").last.press("Enter")
    on_heading(page, "card 1 of 9")
    at_rest(page)
    assert page.locator(".stMain").evaluate("(one) => one.scrollTop") == 0
    assert focused(page).endswith("Answer by list")
    button(page, "Skip").press("Enter")
    expect(button(page, "Next")).to_be_focused()
    page.keyboard.press("Enter")
    on_heading(page, "card 2 of 9")
    at_rest(page)
    # The player's keys are the page's.
    page.keyboard.press("ArrowRight")
    expect(card(page)).to_contain_text("✓ Done")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-part=sentence]")).to_contain_text("Step 1 of 12")
    assert focused(page) == "Next"
    page.keyboard.press("Enter")
    on_heading(page, "card 3 of 9")
    at_rest(page)
    assert focused(page).endswith("Answer by list")
    page.keyboard.press("Enter")
    card(page).get_by_role("radio").first.wait_for()
    page.keyboard.press("Tab")
    for _ in range(9):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect_said(page, "Right. You: 10·h")
    expect(button(page, "Next")).to_be_focused()
    page.keyboard.press("Enter")
    on_heading(page, "card 4 of 9")
    at_rest(page)
    assert focused(page).startswith("Row 5 gives 0.74")
    page.keyboard.type("0,24")
    page.keyboard.press("Enter")
    expect_said(page, "Right.")
    expect(button(page, "Next")).to_be_focused()


@pytest.mark.slow
def test_reload_wandering_and_back_lose_nothing(page: Page, server: str, lessons: dict[str, Lesson]) -> None:
    open_step(page, server, lessons["map"], 3)
    # Another page could tell, and waits too.
    page.get_by_role("link", name="Compare").click()
    expect(page.get_by_text("covered until the question of the lesson")).to_be_visible()
    assert not page.locator(".chart").count()
    button(page, "Back to the page of this card").click()
    cells(page).first.wait_for()
    at_rest(page)
    cells(page).nth(9).click()
    page.locator(".asked-look").click()
    expect_said(page, "Right.")
    at_rest(page)
    page.reload()
    expect_said(page, "Right. You: 10·h.")
    page.get_by_role("link", name="Compare").click()
    expect(page.locator("h1")).to_have_text("Compare")
    expect(page.locator(".st-key-lesson-home")).to_be_visible()
    at_rest(page)
    page.go_back()
    expect(page.locator("h1")).to_have_text("Explore")
    expect(card(page).locator('[role="status"]')).to_contain_text("Right. You: 10·h.")
    at_rest(page)
    # Another text is another question, and the first text's answer is remembered.
    box = page.get_by_label("Source text", exact=True)
    box.fill("planet")
    box.press("Enter")
    expect(button(page, "Look")).to_be_visible()
    button(page, "Close the lesson").click()
    expect(card(page)).to_have_count(0)
    at_rest(page)
    assert "lesson" not in page.url


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, slow(1440)])
def test_a_link_with_a_step_alone_goes_to_where_it_begins(page: Page, server: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{server}/?lesson=future.4")
    expect(page.locator("h1")).to_have_text("Masks")
    expect(page.get_by_role("combobox", name="Mistake")).to_have_value(MISTAKE_TITLES["no-causal"])
    expect(card(page)).to_contain_text("card 4 of 8")


@pytest.mark.slow
def test_hints_fold_and_what_is_done_survive_a_reload(page: Page, server: str, lessons: dict[str, Lesson]) -> None:
    open_step(page, server, lessons["map"], 2)
    button(page, "Hint").click()
    expect(card(page).locator(".st-key-lesson-hints p")).to_have_count(1)
    page.get_by_role("button", name="Step on").click()
    expect(card(page)).to_contain_text("✓ Done")
    page.get_by_role("button", name="Step back").click()
    at_rest(page)
    page.reload()
    expect(card(page)).to_contain_text("✓ Done")
    expect(card(page).locator(".st-key-lesson-hints p")).to_have_count(1)
    button(page, "Fold the card").click()
    expect(button(page, "Next")).to_be_hidden()
    at_rest(page)
    page.reload()
    expect(button(page, "Unfold the card")).to_be_visible()
    expect(button(page, "Next")).to_be_hidden()


@pytest.mark.slow
def test_a_step_moves_the_player_of_a_run_that_is_there_already(page: Page, server: str, lessons: dict[str, Lesson]) -> None:
    open_step(page, server, lessons["map"], 5)
    button(page, "Skip").click()
    page.get_by_role("tab").first.wait_for()
    at_rest(page)
    button(page, "Next").click()
    expect(card(page)).to_contain_text("card 6 of 9")
    expect(page.locator("[data-part=sentence]")).to_contain_text("Step 12 of 12")


@pytest.mark.slow
def test_on_a_phone_it_stands_open_below_the_page(page: Page, server: str, lessons: dict[str, Lesson]) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_step(page, server, lessons["map"], 3)

    def bounds(selector: str) -> tuple[float, float]:
        box = page.locator(selector).bounding_box()
        assert box is not None
        return box["y"], box["y"] + box["height"]

    # With its answers; and the page ends where the card begins, with the row that is asked about in sight.
    expect(button(page, "Look")).to_be_in_viewport()
    assert bounds(".stMain")[1] <= bounds(CARD)[0]
    assert bounds(".asked-row")[1] <= bounds(CARD)[0]
    assert not [*faults(page, CARD)]
    # All of its head is the button.
    page.mouse.click(120, bounds(f"{CARD} .lesson-step")[0] + 8)
    expect(button(page, "Look")).to_be_hidden()
    expect(card(page).locator(".st-key-lesson-line")).to_contain_text("Row 3: it has just written i.")
    assert bounds(CARD)[0] > 700
    assert bounds(".stMain")[1] <= bounds(CARD)[0]


@pytest.mark.slow
def test_what_a_step_speaks_of_is_lit_and_all_else_stays_bright(page: Page, server: str, lessons: dict[str, Lesson]) -> None:
    open_step(page, server, lessons["map"], 2)
    shadow, box = "(one) => getComputedStyle(one).boxShadow", page.locator(".focus")
    assert box.evaluate("(one) => getComputedStyle(one).outlineStyle") == "solid"
    spread = re.findall(r"(\d+)px", box.evaluate(shadow))
    assert max(map(int, spread)) < 40
    page.get_by_role("button", name="Step on").click()
    expect(card(page)).to_contain_text("✓ Done")
    button(page, "Fold the card").click()
    expect(button(page, "Next")).to_be_hidden()
    assert box.evaluate(shadow) == "none"


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 820, slow(390)])
@pytest.mark.parametrize("place", [("map", 8), ("beam", 4), slow(("training", 4))], ids=str)
def test_the_card_lies_on_nothing_that_it_speaks_of(
    page: Page, server: str, lessons: dict[str, Lesson], place: tuple[str, int], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": {1280: 720, 820: 1180}.get(width, 844)})
    lesson, number = lessons[place[0]], place[1]
    open_step(page, server, lesson, number)
    point = POINTS[lesson.steps[number - 1].point]
    page.locator(point.selector).first.wait_for()
    # What of it is in sight: the page ends where the card begins.
    seen = """(one) => {
      const [box, page, card] = [one, document.querySelector('.stMain'), document.querySelector('.st-key-lesson-card')]
        .map((each) => each.getBoundingClientRect());
      const bottom = Math.min(box.bottom, page.bottom), right = Math.min(box.right, page.right);
      return Math.min(bottom, card.bottom) > Math.max(box.top, card.top) + 1
        && Math.min(right, card.right) > Math.max(box.left, card.left) + 1;
    }"""
    assert not page.locator(point.selector).first.evaluate(seen)
    for one in card(page).get_by_role("button").all():
        box = one.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width
    ways = page.locator(".st-key-lesson-ways").bounding_box()
    assert ways is not None and ways["y"] + ways["height"] <= (page.viewport_size or {"height": 0})["height"]


def asking(holds: Callable[[Ask, Link], bool], *first: tuple[str, int]) -> list[Any]:
    """Every question of every lesson for which it holds, by lesson and step; all but the first ones are slow."""
    found = []
    for lesson in read_lessons(LESSONS / "en")[0]:
        for number, step in enumerate(lesson.steps, start=1):
            link = lesson.start_of(number - 1)
            if step.ask is not None and link is not None and holds(step.ask, link):
                marks = [pytest.mark.slow] * ((lesson.name, number) not in first)
                found.append(pytest.param(lesson.name, number, marks=marks))
    assert len(found) > len(first)
    return found


def hides_a_row(ask: Ask, link: Link) -> bool:
    return COVERS[ask.kind] == "row" and link.page == "explore" and link.kind != "encoder"


def hides_all(ask: Ask, link: Link) -> bool:
    return COVERS[ask.kind] in ("row", "mask") and not hides_a_row(ask, link)


def made(link_values: Any) -> Trace:
    return tv.decode(tv.load_checkpoint(link_values.get("checkpoint", "reverse"), device="cpu"), link_values["text"])


@pytest.mark.parametrize(("name", "number"), asking(hides_a_row, ("map", 1)))
def test_a_row_is_hidden_until_its_question_is_answered(
    page: Page, server: str, lessons: dict[str, Lesson], name: str, number: int
) -> None:
    """No weight, no token and no candidate of it or of a later row, in any element or chart, and all of it after."""
    lesson = lessons[name]
    open_step(page, server, lesson, number)
    ask, link = lesson.steps[number - 1].ask, lesson.start_of(number - 1)
    assert ask is not None
    assert ask.row is not None
    assert link is not None
    trace = made(link.values)
    row = ask.row - 1
    numbers = weights_from(trace, row)
    assert not told(page, numbers)
    assert page.locator("[data-part=output] button").all_inner_texts()[row:] == ["?"] * (trace.n_steps - row)
    assert not page.get_by_role("tab").count()
    button(page, "Skip").click()
    page.get_by_role("tab").first.wait_for()
    at_rest(page)
    assert told(page, numbers)
    assert page.locator("[data-part=output] button").nth(row).inner_text() == trace.output_tokens[row]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), asking(hides_all, ("future", 1)))
def test_masks_a_row_of_the_encoder_and_a_moment_are_covered_and_the_page_is_there(
    page: Page, server: str, lessons: dict[str, Lesson], name: str, number: int
) -> None:
    """What of them is sent `test_lesson_curtains` says."""
    open_step(page, server, lessons[name], number)
    page.locator(".chart .main-svg").first.wait_for()
    assert not page.get_by_role("tab").count()
    button(page, "Skip").click()
    expect(card(page)).to_contain_text("Skipped. It: ")
    page.locator(".chart .main-svg").first.wait_for()


def cells(page: Page) -> Locator:
    return page.locator(".asked-cells > span")


def column_is_lit(page: Page) -> bool:
    return bool(page.locator("[data-part=focus] .marks .pointed").get_attribute("d"))


@pytest.mark.slow
def test_a_row_is_answered_with_a_flag_that_stays(page: Page, server: str, lessons: dict[str, Lesson]) -> None:
    open_step(page, server, lessons["map"], 3)
    cells(page).nth(8).hover()
    assert column_is_lit(page)
    expect(cells(page).nth(8)).to_have_attribute("title", "9·t: covered until you answer")
    cells(page).nth(8).click()
    expect(cells(page).nth(8)).to_have_attribute("aria-checked", "true")
    # It is moved, by a letter of the word too.
    page.locator("[data-part=source] .token").nth(11).click()
    expect(page.locator(".asked-cells .flagged")).to_have_count(1)
    expect(cells(page).nth(11)).to_have_attribute("aria-checked", "true")
    expect(card(page)).to_contain_text("Your flag: 12·s.")
    assert not [*faults(page, ".st-key-picture")]
    page.locator(".asked-look").click()
    expect_said(page, "Not so. You: 12·s. It: 10·h 91\xa0%.")
    expect(page.locator("[data-part=sentence]")).to_contain_text("Step 3 of 12")
    expect(page.locator(".asked-row.open .flagged")).to_be_visible()
    # The flag is of this head; over another one it would say something that nobody has said.
    at_rest(page)
    page.locator("[data-part=mosaics] [data-kind=cross]").click(position={"x": 40, "y": 60})
    expect(page.locator(".asked-row.open .flagged")).to_be_hidden()


@pytest.mark.slow
def test_either_of_two_letters_is_the_answer(page: Page, server: str, lessons: dict[str, Lesson]) -> None:
    for place in (11, 6):  # reversethis has two letters s
        open_step(page, server, lessons["map"], 1)
        page.locator("[data-part=source] .token").nth(place).click()
        expect(card(page)).to_contain_text("You say s.")
        button(page, "Look").click()
        expect_said(page, "Right. You: s. It: s")


@pytest.mark.slow
def test_masked_cells_are_painted_by_keyboard(page: Page, server: str, lessons: dict[str, Lesson]) -> None:
    open_step(page, server, lessons["future"], 1)
    press(page, page.locator(".asked-cells"), "End")
    for _ in range(3):
        page.keyboard.press("Space")
        page.keyboard.press("ArrowLeft")
    expect(page.locator(".asked-cells .flagged")).to_have_count(3)
    expect(page.get_by_role("checkbox", name="5·?").first).to_be_checked()
    expect(card(page)).to_contain_text("Painted: 4·?, 5·?, 6·?.")
    press(page, button(page, "Look"))
    expect_said(page, "Right. You: 4·?, 5·?, 6·?.")


TELLS = {
    "matters-most": r"[Cc]ause|occlusion",
    "heads-by": r"entropy of|best:",
    "aligns": r"best:|of the right|share on",
    "greedy-or-beam": r"beam [a-z]+ found|rank|hypothes",
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), asking(lambda ask, link: ask.kind in TELLS, ("heads", 5)))
def test_numbers_of_heads_causes_and_searches_are_not_told(
    page: Page, server: str, lessons: dict[str, Lesson], name: str, number: int
) -> None:
    lesson, ask = lessons[name], lessons[name].steps[number - 1].ask
    assert ask is not None
    open_step(page, server, lesson, number)
    said_outside = page.evaluate(SENT)["texts"]
    outside = re.sub(r"<style.*?</style>|<script.*?</script>", "", said_outside, flags=re.DOTALL)
    outside = outside.replace(page.locator(CARD).evaluate("(one) => one.outerHTML"), "")
    assert not re.search(TELLS[ask.kind], re.sub(r"<[^>]*>", " ", outside))
    assert not page.locator(".st-key-search-tree .chart").count()
    assert not page.get_by_role("tab").count()


@pytest.mark.slow
def test_the_name_of_a_mistake_is_not_told(page: Page, server: str, lessons: dict[str, Lesson]) -> None:
    open_step(page, server, lessons["future"], 7)
    page.locator(".chart .main-svg").first.wait_for()
    rest = page.evaluate(SENT)["texts"].replace(card(page).evaluate("(one) => one.outerHTML"), "")
    rest = rest.replace(page.url, "")
    assert not [title for title in MISTAKE_TITLES.values() if title in rest]
    assert "causal-off-by-one" not in rest
    # A reload keeps what the step began with, though the page was not drawn.
    page.reload()
    card(page).get_by_role("radio").first.wait_for()
    at_rest(page)
    button(page, "Skip").click()
    expect(page.get_by_role("combobox", name="Mistake")).to_have_value(MISTAKE_TITLES["causal-off-by-one"])


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_is_wrong_with_a_page_beside_a_card(page: Page, server: str, lessons: dict[str, Lesson], width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_step(page, server, lessons["map"], 3)
    box = card(page).bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= 900
    assert not [*faults(page, CARD)]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["Answer", slow("Skip")])
def test_the_row_that_was_asked_about_is_shown_with_what_is_right(
    page: Page, server: str, lessons: dict[str, Lesson], way: str
) -> None:
    open_step(page, server, lessons["map"], 3)
    sentence = page.locator("[data-part=sentence]")
    expect(sentence).not_to_contain_text("Step 3 of 12")
    if way == "Answer":
        card(page).get_by_text("Answer by list").click()
        card(page).locator('label:has(input[type="radio"])').first.click()
    button(page, way).click()
    expect(sentence.filter(has_text="Step 3 of 12")).to_be_visible()
    expect(card(page)).to_contain_text("10·h")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["map", "number", "future", "three-kinds", "heads", "beam", "training", "explanation"])
def test_next_goes_through_a_lesson_from_its_first_step_to_the_list(
    page: Page, server: str, lessons: dict[str, Lesson], name: str
) -> None:
    """On the page where each step begins, with what it begins with, and what it points at in sight."""
    lesson, titles = lessons[name], {path(one): one.TITLE for one in pages()}
    open_step(page, server, lesson, 1)
    for place, step in enumerate(lesson.steps):
        link = lesson.start_of(place)
        assert link is not None
        expect(page.locator("h1")).to_have_text(titles[link.page])
        expect(card(page)).to_contain_text(f"card {place + 1} of {len(lesson.steps)}")
        expect(card(page).get_by_role("heading")).to_have_text(step.title)
        if step.ask is not None:
            button(page, "Skip").click()
            expect(card(page).locator('[role="status"]').first).to_contain_text("Skipped.")
        # Only what is not the page's default is in its address.
        if "text" in link.values:
            expect(page.get_by_label("Source text", exact=True)).to_have_value(link.values["text"])
        at_rest(page)
        if step.point:
            (box, *_) = page.locator(POINTS[step.point].selector).all()
            in_sight = "(one) => one.getBoundingClientRect().top < innerHeight - 40"
            page.wait_for_function(in_sight, arg=box.element_handle())
        is_last = place + 1 == len(lesson.steps)
        button(page, "All lessons" if is_last else "Next").click()
    expect(page.get_by_role("heading", name="Learn")).to_have_count(1)
