"""Do the other pages lose a press? `python -m benchmarks.bursts_of_pages [--page masks] [--bursts 50] [--delay 0] [--seed 1]`.

As `benchmarks.bursts`, of Masks, Compare, How it learned and Over many texts: presses of their controls at two to eight a
second; at rest each control has what was pressed last, and so has the address; a reload of it shows the same boxes and
pictures.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Error, Page, sync_playwright

from benchmarks import served
from benchmarks.bursts import COOKIE, LISTEN, click_chart
from benchmarks.slow_line import slow_line
from transformer_viz.edits import parse
from transformer_viz.terms import KIND_TITLES
from transformer_viz.views.compare.page import EXAMPLES

ADDRESSES = {
    "masks": "/masks?sources=hello%0Aab%0Areversethis&masks_tab=Change+and+run+again&all_controls=true",
    "compare": "/compare?text=reversethis&b_text=reversethat&all_controls=true",
    "learned": "/train?learned=true&checkpoint=reverse-small&all_controls=true",
    "survey": "/survey?all_controls=true",
}
_BOXES = ".st-key-picture .boxes >> nth=0"
"""Those of a picture that are to be seen, of two the first."""
_OF_HEAD, _STAYS = ("kind", "layer", "head"), ("key", "tile", "kind", "layer", "head", "reach")
"""What says which head is looked at; and the presses after which the run is the same."""
_STATE = """() => {
  if (document.querySelector('[data-testid=stApp]')?.dataset.testScriptState !== 'notRunning') return null;
  // Streamlit fetches what draws a box when it first has one, and a grey bar stands for it meanwhile.
  if (window.__asked > window.__heard || document.querySelector('[data-testid=stSkeleton]')) return null;
  const main = document.querySelector('[data-testid=stMain]') ?? document.body, boxes = {}, charts = {};
  for (const one of main.querySelectorAll('[class*=st-key-]')) {
    // A box that presses elsewhere change too is another one after each.
    const key = [...one.classList].find((name) => name.startsWith('st-key-')).slice(7).replace(/_box_\\d+$/, '');
    const box = one.matches('[data-testid=stElementContainer]') && one.querySelector('input:not([type=radio]), textarea');
    const pressed = one.querySelector('[aria-checked=true]');
    if (one.querySelector('[role=radiogroup], [data-testid=stButtonGroup]') && pressed) boxes[key] = pressed.innerText;
    else if (box) boxes[key] = box.type === 'checkbox' ? String(box.checked) : box.value;
  }
  for (const chart of main.querySelectorAll('.chart')) {
    // What is not in sight is drawn once it is.
    if (!chart.clientWidth || chart.ariaHidden === 'true') continue;
    if (!chart.data) return null;
    const key = [...chart.closest('[class*=st-key-]').classList].find((name) => name.startsWith('st-key-'));
    const part = `${chart.closest('[data-side]')?.dataset.side ?? ''} ${chart.dataset.kind ?? chart.dataset.part ?? ''}`;
    const numbers = (z) => z?.bdata ?? JSON.stringify([...(z ?? [])].map((row) => [...row]), (_, each) =>
      typeof each === 'number' ? Math.round(1e4 * each) / 1e4 : each);
    charts[`${key} ${part}`] = chart.data.filter(({ type }) => type === 'heatmap').map(({ z }) => numbers(z));
  }
  const viewer = main.querySelector('.st-key-picture :is(.viewer, .learned)');
  if (main.querySelector('.st-key-picture [aria-busy=true]')) return null;
  const focus = main.querySelector('.st-key-picture .boxes');
  if (focus) {
    boxes.kind = focus.querySelector('[data-box=kind] [aria-pressed=true]')?.textContent;
    for (const name of ['layer', 'head', 'position']) {
      const box = focus.querySelector(`[data-box=${name}]`);
      if (box) boxes[name] = box.selectedOptions[0]?.text;
    }
  }
  if (!Object.keys(boxes).length) return null;
  const moments = [...viewer?.querySelectorAll('[data-part=output] > *') ?? []];
  const now = moments.findIndex((cell) => cell.classList.contains('now'));
  const tabs = [...main.querySelectorAll('[role=tab][aria-selected=true]')].map((tab) => tab.textContent.trim());
  return { boxes, charts, moment: now, tabs, address: location.search };
}"""
"""What a page shows, or null while something is under way."""


@dataclass
class Pressed:
    """The presses of one page, and what they should have led to.

    Attributes:
        page: that has been opened.
        name: of `ADDRESSES`.
        dice: decide.
        only: the controls that are pressed; all where empty.
        want: of each box that was pressed its words; "moment", "tab" and "edits" apart.
        texts: of Compare those that both sides had when the burst began.
    """

    page: Page
    name: str
    dice: random.Random
    only: tuple[str, ...] = ()
    want: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    n_presses: int = 0
    is_moving: bool = False

    def burst(self) -> list[str]:
        """One burst; returns where page and presses disagree."""
        done: list[str] = []
        self.want, self.is_moving = {"edits": self.want.get("edits", [])}, False
        if self.name == "compare":
            self.texts = {key: self.page.locator(f".st-key-{key} input").first.input_value() for key in ("text", "b_text")}
        for _ in range(self.dice.randint(2, 8)):
            presses = self._presses()
            # Of what is not there yet, a person presses nothing.
            name = self.dice.choice([name for name in presses if not self.only or name in self.only])
            try:
                said = presses[name]()
            except Error as error:
                # What was reset may have taken the picture away.
                if name in _OF_HEAD and not self._shown(_BOXES):
                    done.append(f"{name} has gone")
                    continue
                return [f"{name} cannot be pressed: {str(error)[:2000]}", f"after {', '.join(done)}"]
            done.append(f"{name} {said}".strip())
            if self.name == "masks" and name not in _STAYS:
                self.is_moving = True
                self.want.pop("moment", None)
                # A mistake shows the head that looks most at what is hidden.
                if "Mistakes" in self.page.locator(".stTabs [role=tab][aria-selected=true]").all_inner_texts():
                    self.want = {key: word for key, word in self.want.items() if key not in _OF_HEAD}
            self.n_presses += 1
            self.page.wait_for_timeout(1000 * self.dice.uniform(1 / 8, 1 / 2))
        bad = self.differences(self.settled())
        return [*bad, f"after {', '.join(done)}"] if bad else []

    def reload(self) -> list[str]:
        """Opens the address anew; returns where that differs."""
        before, edits = self.settled(), self.want.get("edits", [])
        n_parts = self.page.locator("[class*=st-key-]").count() // 2
        self.page.goto(self.page.url)
        # A busy machine may rest for a moment between two parts of a page.
        self.page.locator(".st-key-pages").wait_for()
        self.page.wait_for_function(
            "(n) => document.querySelectorAll('[class*=st-key-]').length >= n", arg=n_parts, timeout=20_000
        )
        now, self.want = self.settled(), {"edits": edits}
        return [
            f"after a reload {part} {key!r} is another: {str(before[part].get(key))[:80]}, now {str(now[part].get(key))[:80]}"
            for part in ("boxes", "charts")
            for key in {**before[part], **now[part]}
            if before[part].get(key) != now[part].get(key)
        ] + [
            f"after a reload {part} is {now[part]}, was {before[part]}"
            for part in ("moment", "tabs")
            if now[part] != before[part]
        ]

    def settled(self) -> dict[str, Any]:
        """What the page shows once it rests."""
        before, since, end = None, time.monotonic(), time.monotonic() + 60
        while time.monotonic() < end:
            try:
                now = self.page.evaluate(_STATE)
            except Error:  # it is drawn meanwhile
                now = None
            if now is None or now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > 0.5:
                return now
            self.page.wait_for_timeout(50)
        raise AssertionError(f"the page did not come to rest: {str(before)[:300]}")

    def differences(self, found: dict[str, Any]) -> list[str]:
        """Where boxes and address are not what was pressed last."""
        said, bad = {key: words[0] for key, words in parse_qs(urlsplit(self.page.url).query).items()}, []
        for key, word in self.want.items():
            if key == "edits":
                if (edits := list(map(str, parse(said.get("edits", ""))))) != word:
                    bad.append(f"the address has the edits {edits}, pressed {word}")
                continue
            if key not in ("moment", "tab") and key not in found["boxes"]:
                continue  # another tab has other boxes
            has = found["moment"] if key == "moment" else found["tabs"] if key == "tab" else found["boxes"][key]
            if has != word and not (key == "tab" and word in has):
                bad.append(f"{key} is {has!r}, pressed {word!r}")
            if key in said and key != "moment" and said[key] != word:
                bad.append(f"the address has {key}={said[key]!r}, pressed {word!r}")
        return bad

    # ---- presses

    def _presses(self) -> dict[str, Callable[[], str]]:
        head = {"kind": self._kind, "layer": lambda: self._head("layer"), "head": lambda: self._head("head")}
        switch = {"switch": self._switch}
        if self.name == "masks":
            more = {"sentence": lambda: self._group("sentence"), "mistake": lambda: self._select("mistake"), "cell": self._cell}
            more |= {"tile": self._tile, "masks_of": lambda: self._group("masks_of"), "card": self._card}
            # A step that is pressed while something else is computed is of the run before.
            if not self.is_moving and self._shown(_BOXES):
                more["key"] = self._key
            return {**head, **more, **switch, "tab": self._tab, "reach": lambda: self._select("reach"), "reset": self._reset}
        if self.name == "compare":
            texts = {"text": lambda: self._type("text"), "b_text": lambda: self._type("b_text")}
            # A step that is pressed while another text is read is of the run before.
            steps = {} if {"text", "b_text"} & self.want.keys() else {"key": self._key}
            return {**head, **steps, "tile": self._tile, **texts, "swap": self._swap, "pair": self._pair, **switch}
        if self.name == "learned":
            more = {"key": self._key, "tile": self._tile, "position": lambda: self._head("position")}
            more |= {"moment": self._moment}
            return {**head, **more, **switch}
        numbers = {"number": lambda: self._select("survey_number"), "tile": self._tile, "tab": self._tab}
        return {**head, **numbers, **switch}

    def _shown(self, selector: str) -> bool:
        return self.page.locator(selector).first.is_visible()

    def _group(self, key: str) -> str:
        if not self._shown(f".st-key-{key} button"):
            return "is not there"
        buttons = self.page.locator(f".st-key-{key} button")
        button = buttons.nth(self.dice.randrange(buttons.count()))
        words = button.inner_text()
        button.click()
        self.want[key] = words
        return words

    def _kind(self) -> str:
        if not self._shown(_BOXES):
            words = self._group("kind")
        else:
            button = self.page.locator(f"{_BOXES} >> [data-box=kind] button").nth(self.dice.randrange(3))
            button.click()
            words = self.want["kind"] = button.inner_text()
        # Another kind may have other layers and heads.
        for key in ("layer", "head"):
            self.want.pop(key, None)
        return words

    def _head(self, key: str) -> str:
        """A layer, a head or a position: of the viewer, or of the page."""
        if not self._shown(_BOXES):
            return self._select(key)
        box = self.page.locator(f"{_BOXES} >> [data-box={key}]").first
        if not box.is_visible():
            return "is not there"
        if not (options := box.locator("option").all_inner_texts()):
            return "has gone"
        words = self.dice.choice(options)
        box.select_option(label=words)
        self.want[key] = words
        return words

    def _select(self, key: str) -> str:
        box = self.page.locator(f".st-key-{key} input")
        if not self._shown(f".st-key-{key} input"):
            return "is not there"
        # By the keyboard: a long list opens under the pointer, where Streamlit takes the end of the click for a choice.
        self.page.locator("[role=listbox]").wait_for(state="detached")
        box.first.press("ArrowDown")
        options = self.page.locator("[role=listbox] [role=option]")
        try:
            options.first.wait_for(timeout=2_000)
        except Error:  # the key came before the box had heard that it has the keyboard
            box.first.press("ArrowDown")
            options.first.wait_for(timeout=5_000)
        # What came from the server meanwhile may have closed it, which a person sees.
        if not (n := options.count()):
            return "is closed again"
        option = options.nth(self.dice.randrange(min(6, n)))
        try:
            words = option.inner_text(timeout=2_000)
        except Error:
            return "is closed again"
        option.click()
        self.want[key] = words
        if key == "survey_number":
            for other in ("kind", "layer", "head"):
                self.want.pop(other, None)
        return words

    def _tab(self) -> str:
        tabs = self.page.locator(".stTabs [role=tab]")
        # Of Masks those with pictures of a head are pressed more often.
        tab = tabs.nth(self.dice.randrange(min(4, tabs.count())))
        words = tab.inner_text()
        tab.click()
        self.want["tab"] = words
        # Where one head is looked at, there is no mean of heads.
        self.want.pop("head", None)
        return words

    def _type(self, key: str) -> str:
        words = self.dice.choice(("hello", "help", "abcdef", "transformer", "noon"))
        box = self.page.locator(f".st-key-{key} input").first
        box.fill(words)
        box.press("Enter")
        # Where they differ most is another head then.
        self.want = {**{each: self.want[each] for each in ("text", "b_text") if each in self.want}, "edits": [], key: words}
        return words

    def _cell(self) -> str:
        place = ".st-key-picture [data-part=mask-now]"
        # A mask of another sentence has other rows.
        if not self._shown(place) or not self._shown(".st-key-reach input") or "sentence" in self.want:
            return "is not there"
        row, column = self.dice.randrange(3), self.dice.randrange(3)
        # The answer to the press before may move it under the hand.
        x, y, _ = click_chart(self.page, self.page.locator(place), lambda _: (column, row))
        row, column = round(y), round(x)
        kind, layer, head = self.page.evaluate(
            """(names) => names.map((name) => {
              const box = document.querySelector(`.st-key-picture .boxes [data-box=${name}]`);
              return box.value ?? box.querySelector('[aria-pressed=true]').value;
            })""",
            _OF_HEAD,
        )
        layer, head = int(layer), int(head) if head.isdigit() else 0
        reach = self.page.locator(".st-key-reach input").input_value()
        where = {"all layers": kind, "this layer": f"{kind}.{layer + 1}"}
        flip = f"{where.get(reach[3:13], f'{kind}.{layer + 1}.{head + 1}')}:{row + 1}-{column + 1}"
        edits = self.want["edits"]
        self.want["edits"] = [each for each in edits if each != flip] if flip in edits else [*edits, flip]
        return flip

    def _reset(self) -> str:
        if not self._shown(".st-key-lab-reset-all button"):
            return "is not there"
        try:
            self.page.locator(".st-key-lab-reset-all button").click(timeout=2_000)
        except Error:  # it has gone meanwhile: nothing is changed any more
            return "has gone"
        self.want |= {"edits": [], "mistake": "no mistake"}
        return ""

    def _card(self) -> str:
        """Makes a mistake by its card, or takes it back."""
        buttons = self.page.locator("[class*=st-key-make-] button")
        if not self._shown("[class*=st-key-make-] button"):
            return "is not there"
        button = buttons.nth(self.dice.randrange(buttons.count()))
        # What is changed on the page may take the card away, or turn its button.
        about = """(button) => {
          const card = button.closest('[class*=st-key-mistake-]');
          return card && [card.querySelector('strong').innerText, button.innerText];
        }"""
        if not (said := button.evaluate(about)):
            return "has gone"
        title, is_made = said[0], said[1].strip() != "Take it back"
        button.click()
        self.want["mistake"] = title if is_made else "no mistake"
        return self.want["mistake"]

    def _swap(self) -> str:
        return self._sides(self.want.get("b_text", self.texts["b_text"]), self.want.get("text", self.texts["text"]), "swap")

    def _pair(self) -> str:
        """Takes an example that the models of these bursts can read."""
        examples = [*EXAMPLES.values()]
        number = self.dice.choice([i for i, sides in enumerate(examples) if sides[0]["checkpoint"].startswith("reverse")])
        self.page.get_by_role("button", name="Examples").click()
        done = self._sides(*(side["text"] for side in examples[number]), f"pair-{number}")
        # What is open over the picture takes its presses.
        self.page.keyboard.press("Escape")
        self.page.locator(f".st-key-pair-{number}").wait_for(state="hidden")
        return done

    def _sides(self, a: str, b: str, button: str) -> str:
        self.page.locator(f".st-key-{button} button").click()
        # Other runs may differ most elsewhere.
        self.want = {"edits": [], "text": a, "b_text": b}
        return f"{button}: {a}, {b}"

    def _tile(self) -> str:
        kind = self.dice.choice([*KIND_TITLES])
        place = f".st-key-picture .mosaics [data-kind={kind}]"
        chart = self.page.locator(place).first
        if not self._shown(place):
            return "is not there"
        try:
            meta = chart.evaluate("(chart) => chart.layout?.meta", timeout=2_000)
        except Error:  # the answer to the press before has no such map
            return "has gone"
        if not meta or not meta.get("tiles"):
            return "is not there"
        share = self.dice.random()

        def place_of_tile(meta: Any) -> tuple[float, float]:
            """A tile of what is there now: another run may have fewer."""
            y, x = divmod(int(share * len(meta["tiles"])), meta.get("heads", 1))
            # The first cell's middle is 0.
            middle_x, middle_y = ((meta.get(name, 1) - 1) / 2 for name in ("columns", "rows"))
            return x * meta["pitch_x"] + middle_x, y * meta["pitch_y"] + middle_y

        where = "(chart) => JSON.stringify(chart.getBoundingClientRect())"
        try:
            before = chart.evaluate(where, timeout=2_000)
            at_x, at_y, meta = click_chart(self.page, chart, place_of_tile)
            stood = before == chart.evaluate(where, timeout=2_000)
        except Error:  # maps come and go with the number that was asked for
            if self._shown(place):
                raise
            stood = False
        if not stood:
            # Which tile it was is not known.
            for key in _OF_HEAD:
                self.want.pop(key, None)
            return "moved under the hand"
        x, y = ((at + 0.5) // meta[pitch] for at, pitch in ((at_x, "pitch_x"), (at_y, "pitch_y")))
        layer, head = meta["tiles"][int(y) * meta.get("heads", 1) + int(x)]
        self.want |= {"kind": KIND_TITLES[kind], "layer": f"layer {layer + 1}", "head": f"head {head + 1}"}
        return f"{kind}.{layer + 1}.{head + 1}"

    def _key(self) -> str:
        key = self.dice.choice(["ArrowRight", "ArrowLeft", "Home", "End"])
        self.page.evaluate("() => document.activeElement?.blur()")
        self.page.keyboard.press(key)
        now = self.page.evaluate(
            """() => [...document.querySelectorAll('.st-key-picture [data-part=output] > *')]
              .findIndex((cell) => cell.classList.contains('now'))"""
        )
        # The picture of one head has no steps.
        if now >= 0:
            self.want["moment"] = now
        return key

    def _moment(self) -> str:
        """A moment of a training, by its button."""
        buttons = self.page.locator(".st-key-picture [data-part=output] button")
        self.want["moment"] = place = self.dice.randrange(buttons.count())
        buttons.nth(place).click()
        return str(place + 1)

    def _switch(self) -> str:
        self.settled()
        title, url = self.page.locator("h1").inner_text(), self.page.url
        self.page.locator(".st-key-pages").get_by_role("link", name="Learn").click()
        self.page.get_by_role("heading", name="Learn", exact=True).wait_for(state="attached")
        if goes_back := self.dice.random() < 0.5:
            self.page.go_back()
        else:
            self.page.locator(".st-key-pages").get_by_role("link", name=title).click()
        self.page.get_by_role("heading", name=title, exact=True).wait_for(state="attached")
        self.settled()
        assert urlsplit(self.page.url).path == urlsplit(url).path
        return "and Back" if goes_back else "and by the link"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", choices=[*ADDRESSES], help="all by default")
    parser.add_argument("--bursts", type=int, default=40, help="of each page")
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="controls, as kind,tab,text")
    options = parser.parse_args()
    n_wrong, n_presses = 0, 0
    with ExitStack() as stack:
        url = stack.enter_context(slow_line(stack.enter_context(served.server()).url, options.delay))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=served.chromium(), args=served.FLAGS)
        for name in [options.page] if options.page else ADDRESSES:
            context = browser.new_context(viewport={"width": 1440, "height": 1400}, reduced_motion="reduce")
            context.add_init_script(LISTEN)
            context.add_cookies([{"name": COOKIE[0], "value": COOKIE[1], "domain": "localhost", "path": "/"}])
            page = context.new_page()
            page.on("pageerror", lambda error: print("a script failed:", error, flush=True))
            page.goto(url + ADDRESSES[name])
            pressed = Pressed(page, name, random.Random(options.seed), tuple(filter(None, options.only.split(","))))
            pressed.settled()
            for number in range(options.bursts):
                bad = pressed.burst()
                bad += pressed.reload() if number % 5 == 4 else []
                if bad:
                    n_wrong += 1
                    print(f"{name}, burst {number}: {'; '.join(bad)}", flush=True)
                    page.goto(url + ADDRESSES[name])
                    pressed.want = {}
                    pressed.settled()
            n_presses += pressed.n_presses
            context.close()
        browser.close()
    print(json.dumps({**vars(options), "presses": n_presses, "wrong": n_wrong}))
    return n_wrong > 0


if __name__ == "__main__":
    sys.exit(main())
