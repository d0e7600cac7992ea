"""Each step of each lesson as its link opens it: something to look at, a card beside it, and whole buttons."""

import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import at_rest
from transformer_viz.learn.lesson import LESSONS, Lesson, read_lessons
from transformer_viz.learn.points import POINTS

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SIZES = {1280: 720, 820: 900, 390: 844}
_LOOK = """(target) => {
  const card = document.querySelector('.st-key-lesson-card'), over = card.getBoundingClientRect();
  const shown = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 40;
  const pictures = [...document.querySelectorAll('.stMain :is(.main-svg, table, canvas, textarea, .player, form)')];
  const buttons = [...card.querySelectorAll('button')].filter(shown);
  const cut = (one) => {
    const { left, right } = one.getBoundingClientRect();
    const isWithin = left >= Math.max(0, over.left) - 1 && right <= Math.min(innerWidth, over.right) + 1;
    return !isWithin || one.scrollWidth > one.clientWidth + 2;
  };
  // The covered row that is asked about, or else what the step points at, as far as it is in the window.
  const asked = [...document.querySelectorAll('.asked-row:not(.aside)')].find(shown);
  const lit = asked ?? (target && [...document.querySelectorAll(target)].find(shown));
  const box = lit?.getBoundingClientRect();
  const [x, y] = box ? [box.left + box.width / 2, (Math.max(0, box.top) + Math.min(innerHeight, box.bottom)) / 2] : [];
  return {
    pictures: pictures.filter((one) => shown(one) && !card.contains(one)).length,
    cut: buttons.filter(cut).map((one) => one.textContent),
    isCovered: Boolean(box && box.top < innerHeight && card.contains(document.elementFromPoint(x, y))),
    wide: document.documentElement.scrollWidth - innerWidth,
  };
}"""


_EACH = [
    (folder.name, lesson)
    for folder in sorted(folder for folder in LESSONS.iterdir() if folder.is_dir())
    for lesson in read_lessons(folder)[0]
]


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize(("language", "lesson"), _EACH, ids=[f"{language}.{lesson.name}" for language, lesson in _EACH])
def test_no_step_is_empty_or_cut_and_no_card_lies_on_what_it_speaks_of(
    page: Page, server: str, language: str, lesson: Lesson, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": SIZES[width]})
    wrong = []
    for number in range(1, len(lesson.steps) + 1):
        wrong += [f"{lesson.name}.{number}: {fault}" for fault in _faults(page, server, language, lesson, number)]
    assert not wrong


def _faults(page: Page, server: str, language: str, lesson: Lesson, number: int) -> list[str]:
    step = lesson.steps[number - 1]
    language = "" if language == "en" else f"{language}."
    page.goto(f"{server}/?lesson={language}{lesson.name}.{number}")
    expect(page.locator(".st-key-lesson-card").get_by_role("heading")).to_have_text(step.title)
    at_rest(page)
    target, end = POINTS[step.point].selector if step.point else None, time.monotonic() + 20
    # The page scrolls to what a step points at once that is drawn.
    while (faults := _seen_faults(page.evaluate(_LOOK, target))) and time.monotonic() < end:
        page.wait_for_timeout(100)
    return faults


def _seen_faults(found: dict[str, Any]) -> list[str]:
    return [
        *(["nothing to look at"] if not found["pictures"] else []),
        *[f"the button {words} is cut" for words in found["cut"]],
        *(["the card lies on what it speaks of"] if found["isCovered"] else []),
        *([f"{found['wide']} pixels wider than the window"] if found["wide"] > 0 else []),
    ]
