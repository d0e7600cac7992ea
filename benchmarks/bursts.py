"""Does the app lose a press? `python -m benchmarks.bursts [--bursts 400] [--delay 0] [--seed 1] [--url URL]`.

Presses of every control of Explore at two to eight a second; at rest boxes, picture, sentence and address agree with the last
press of each, and so does the page that a reload of the address gives. In no frame between do boxes, picture or address go back
to what was pressed before. `--delay` is a line that takes so many milliseconds each way.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from playwright.sync_api import Error, Locator, Page, TimeoutError, sync_playwright

import transformer_viz as tv
from benchmarks import served
from benchmarks.slow_line import slow_line
from transformer_viz.export.content import default_step
from transformer_viz.terms import KIND_TITLES, Head, Kind
from transformer_viz.trace.trace import Trace

PATH = "/?all_controls=true&text=hello"
TEXTS = ("hello", "abcdef", "reversethis", "noon", "q", "transformer")
TABS = ("Inside", "What if", "Heads", "Masks")
COOKIE = ("transformer_viz_lessons", "0.1")
"""Of a browser that has put the first question away."""
LISTEN = """(() => {
  const send = WebSocket.prototype.send, known = new WeakSet();
  WebSocket.prototype.send = function (message) {
    if (!known.has(this)) known.add(this), this.addEventListener('message', () => window.__heard = performance.now());
    window.__asked = performance.now();
    return send.call(this, message);
  };
})()"""
"""Notes when a page last asked Python, and when it last heard of it; to be run before the page's own scripts.

Streamlit calls a script running when the server says so: until a busy server does, what was asked looks like nothing.
"""
_STATE = """() => {
  const viewer = document.querySelector('.st-key-picture .viewer'), box = (name) => viewer.querySelector(`[data-box=${name}]`);
  const pressed = (group) => viewer.querySelector(`${group} [aria-pressed=true]`);
  const map = viewer.querySelector('[data-part=focus]');
  const typed = document.querySelector('.st-key-text [data-testid=stBidiComponentIsolated]');
  const cells = [...viewer.querySelectorAll('[data-part=output] .token')];
  const rows = (z) => {
    if (!z?.bdata) return z && [...z].map((row) => [...row].map((one) => (Number.isFinite(one) ? one : null)));
    return null;
  };
  return {
    kind: box('kind').querySelector('[aria-pressed=true]')?.value, layer: Number(box('layer').value), head: box('head').value,
    step: cells.findIndex((cell) => cell.classList.contains('now')),
    steps: cells.length,
    sentence: viewer.querySelector('[data-part=sentence]').textContent,
    isPinned: Boolean(viewer.querySelector('.said-of-pin')),
    lines: new URLSearchParams(location.search).get('lines') ?? 'auto',
    lineBox: viewer.querySelector('.lines-switch').value,
    measure: pressed('.measures')?.value ?? 'weights',
    text: typed.shadowRoot.querySelector('input, textarea').value,
    z: rows(map.data?.find((trace) => trace.type === 'heatmap')?.z),
    tab: document.querySelector('.stTabs [role=tab][aria-selected=true]')?.textContent.trim(),
    busy: viewer.querySelectorAll('[aria-busy=true]').length + (viewer.ariaBusy === 'true'),
  };
}"""
_WATCH = """() => {
  window.seen = [];
  let last = '';
  const look = () => {
    requestAnimationFrame(look);
    const viewer = document.querySelector('.st-key-picture .viewer');
    const box = (name) => viewer?.querySelector(`[data-box=${name}]`);
    if (!box('head')?.value || location.pathname !== new URL('.', document.baseURI).pathname) return;
    const typed = document.querySelector('.st-key-text [data-testid=stBidiComponentIsolated]');
    const step = [...viewer.querySelectorAll('[data-part=output] .token')].findIndex((cell) => cell.classList.contains('now'));
    const address = [...new URLSearchParams(location.search)].map(([key, word]) => [`address of ${key}`, word]);
    const now = {
      ...Object.fromEntries(address), step: step < 0 ? undefined : step,
      head: box('head').value, layer: Number(box('layer').value),
      kind: box('kind').querySelector('[aria-pressed=true]')?.value,
      isPinned: Boolean(viewer.querySelector('.said-of-pin')),
      measure: viewer.querySelector('.measures [aria-pressed=true]')?.value,
      'the box': typed?.shadowRoot?.querySelector('input, textarea')?.value,
    };
    const words = JSON.stringify(now);
    if (words !== last) window.seen.push(JSON.parse(last = words));
  };
  look();
}"""
"""Keeps what each frame shows that differs from the one before it."""
_TYPE_AND_LEAVE = """(box, draft) => {
  box.focus();
  box.value = draft;
  box.dispatchEvent(new InputEvent('input'));
  box.blur();
}"""
_FOLLOWS = "(box) => box.parentElement.matches('.follows')"
_WHEN_FOLLOWED = """(box) => new Promise((followed) => {
  const look = () => (box.parentElement.matches('.waits') ? requestAnimationFrame(look) : followed());
  look();
})"""
_REST = """() => !(window.__asked > window.__heard)
  && document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
  && document.querySelector('.st-key-picture .viewer [data-part=focus]')?.data !== undefined"""

_UNREST = """() => ({
  asked: window.__asked, heard: window.__heard, now: performance.now(), address: location.pathname + location.search,
  script: document.querySelector('[data-testid=stApp]')?.dataset.testScriptState,
  viewers: document.querySelectorAll('.st-key-picture .viewer').length,
  isDrawn: document.querySelector('.st-key-picture .viewer [data-part=focus]')?.data !== undefined,
  missing: document.querySelector('.st-key-picture [data-part=missing]')?.textContent,
})"""
"""Why a page is not at rest."""

_PLACE = """(chart, [x, y]) => {
  const { left: at, top } = chart.getBoundingClientRect();
  const plot = chart.querySelector('.nsewdrag[data-subplot=xy]').getBoundingClientRect();
  const [left, right] = chart.layout.xaxis.range, [low, high] = chart.layout.yaxis.range;
  const across = (x - left) / (right - left), up = (y - low) / (high - low);
  return [plot.left - at + plot.width * across, plot.bottom - top - plot.height * up];
}"""
"""Where a place of a chart's axes is within the chart, in pixels."""
_NOTE_PRESS = """(chart) => chart.addEventListener('pointerdown', ({ clientX, clientY }) => {
  const plot = chart.querySelector('.nsewdrag[data-subplot=xy]').getBoundingClientRect();
  const [left, right] = chart.layout.xaxis.range, [low, high] = chart.layout.yaxis.range;
  const across = (clientX - plot.left) / plot.width, up = (plot.bottom - clientY) / plot.height;
  window.__pressed = [left + across * (right - left), low + up * (high - low), chart.layout.meta];
}, { once: true, capture: true })"""
"""Keeps the place of a chart's axes that is pressed next."""
_TRIES, _PATIENCE_MS, _REST_S = 10, 3000, 120


@dataclass(frozen=True)
class Wanted:
    """What was pressed last of each control; numbers from 0."""

    text: str = "hello"
    kind: Kind = "cross"
    layer: int = 0
    head: str = "0"
    step: int = 0
    pin: tuple[int | None, ...] = ()
    lines: str = "auto"
    measure: str = "weights"
    tab: str = "Inside"
    draft: str | None = None

    @property
    def typed(self) -> str:
        """What the box of the text has."""
        return self.text if self.draft is None else self.draft

    def in_address(self) -> dict[str, str]:
        """The words of the address that say it."""
        pin = ",".join("" if place is None else str(place + 1) for place in self.pin).removesuffix(",")
        head = f"head {int(self.head) + 1}" if self.head.isdigit() else f"{self.head} of heads"
        return {
            **{"text": self.text, "kind": KIND_TITLES[self.kind], "layer": f"layer {self.layer + 1}", "head": head},
            **{"step": str(self.step + 1), "pin": pin, "measure": self.measure, "explore_tab": self.tab},
        }

    def in_frame(self) -> dict[str, Any]:
        """What a frame shows of it, as `_WATCH` has it."""
        names = ("kind", "layer", "head", "step", "measure")
        address = {f"address of {key}": word for key, word in self.in_address().items()}
        return {**address, **{name: getattr(self, name) for name in names}, "isPinned": bool(self.pin), "the box": self.typed}


@dataclass
class Bursts:
    """The presses of one page and what they should have led to.

    Attributes:
        page: that has been opened at `PATH`.
        dice: decide.
        only: the controls that are pressed; all where empty.
    """

    page: Page
    dice: random.Random
    only: tuple[str, ...] = ()
    want: Wanted = field(default_factory=Wanted)
    wanted: list[Wanted] = field(default_factory=list)
    places: dict[str, tuple[int, Kind, tuple[int | None, ...]]] = field(default_factory=dict)
    n_presses: int = 0

    def begin(self) -> None:
        """What the page shows at first is what is wanted."""
        found = self.settled()
        self.page.evaluate(_WATCH)
        names = ("kind", "layer", "head", "step", "lines", "measure", "tab", "text")
        pin = parse_qs(urlsplit(self.page.url).query).get("pin", [""])[0]
        places = [int(place) - 1 if place else None for place in f"{pin},".split(",")[:2]]
        self.want = Wanted(**{name: found[name] for name in names}, pin=tuple(places) if pin else ())

    def burst(self) -> list[str]:
        """One burst; returns where page and presses disagree."""
        done: list[str] = []
        self.wanted = [self.want]
        for _ in range(self.dice.randint(2, 8)):
            presses = self._presses(is_reading=any(word.startswith(("text", "follow")) for word in done))
            name = self.dice.choice([name for name in presses if not self.only or name in self.only])
            if name == "switch" and any(word.startswith("tab") for word in done):
                # Streamlit forgets a box of its own whose answer is under way where another page is opened.
                self.settled()
            said = presses[name]()
            self.wanted.append(self.want)
            done.append(f"{name} {said}".strip())
            self.n_presses += 1
            self.page.wait_for_timeout(1000 * self.dice.uniform(1 / 8, 1 / 2))
        bad = [*self.at_rest(), *self.gone_back()]
        return [*bad, f"after {', '.join(done)}"] if bad else []

    def reload(self) -> list[str]:
        """Opens the address anew; returns where that differs."""
        self.page.goto(self.page.url)
        self.want = replace(self.want, draft=None)
        # What is pinned and where it stood of other texts, the new session does not know.
        self.places.clear()
        bad = self.at_rest()
        self.page.evaluate(_WATCH)
        return [f"after a reload {words}" for words in bad]

    # ---- presses

    def _presses(self, *, is_reading: bool) -> dict[str, Callable[[], str]]:
        others = {
            **{"kind": self._kind, "layer": self._layer, "head": self._head, "tile": self._tile, "lines": self._lines},
            **{"measure": self._measure, "tab": self._tab, "text": self._text, "follow": self._follow},
            **{"draft": self._draft, "switch": self._switch},
        }
        # What is pressed of a run while another text is read is of the run before.
        of_run = {"key": self._key, "token": self._token, "source": self._source, "cell": self._cell, "play": self._play}
        return others if is_reading else {**others, **of_run}

    def _kind(self) -> str:
        kind = self.dice.choice([*KIND_TITLES])
        self.page.locator(f".viewer [data-box=kind] [value={kind}]").click()
        self._choose(kind=kind)
        return kind

    def _layer(self) -> str:
        layer = self.dice.randrange(self._trace.attentions[self.want.kind].n_layers)
        self.page.locator(".viewer [data-box=layer]").select_option(str(layer))
        self._choose(layer=layer)
        return str(layer + 1)

    def _head(self) -> str:
        head = self.dice.choice(["0", "1", "2", "3", "mean", "max"])
        self.page.locator(".viewer [data-box=head]").select_option(head)
        self._choose(head=head)
        return head

    def _tile(self) -> str:
        kind = self.dice.choice([*KIND_TITLES])
        shape = self._trace.attentions[kind].weights.shape
        layer, head = self.dice.randrange(shape[0]), self.dice.randrange(shape[1])
        x, y, meta = click_chart(
            self.page,
            self.page.locator(".viewer [data-part=mosaics] .chart").nth([*KIND_TITLES].index(kind)),
            lambda meta: ((head + 0.5) * meta["pitch_x"], (layer + 0.4) * meta["pitch_y"]),
        )
        layer, head = int(y // meta["pitch_y"]), int(x // meta["pitch_x"])
        self._choose(kind=kind, layer=layer, head=str(head))
        return f"{kind}.{layer + 1}.{head + 1}"

    def _lines(self) -> str:
        lines = self.dice.choice(["step", "all", "none"])
        self.page.locator(".viewer .lines-switch").select_option(lines)
        self.want = replace(self.want, lines=lines)
        return lines

    def _measure(self) -> str:
        measure = self.dice.choice(["weights", "value", "cause"])
        self.page.locator(f".viewer .measures [value={measure}]").click()
        self.want = replace(self.want, measure=measure)
        return measure

    def _tab(self) -> str:
        tab = self.dice.choice(TABS)
        self.page.get_by_role("tab", name=tab, exact=True).click()
        self.want = replace(self.want, tab=tab)
        return tab

    def _text(self, *, is_entered: bool = True) -> str:
        text, before = self.dice.choice(TEXTS), self.want
        box = self.page.get_by_label("Source text")
        box.fill(text)
        if is_entered or not box.evaluate(_FOLLOWS):
            box.press("Enter")
        else:
            box.evaluate(_WHEN_FOLLOWED)
        self.page.evaluate("() => document.activeElement?.blur()")
        self.want = replace(before, draft=None)
        if text != before.text:
            self.places[before.text] = before.step, before.kind, before.pin
            step, kind, pin = self.places.pop(text, (default_step(_run(text)), before.kind, ()))
            # What is pinned is a row or a column of one kind.
            self.want = replace(self.want, text=text, step=step, pin=pin if kind == before.kind else ())
        return text

    def _follow(self) -> str:
        return self._text(is_entered=False)

    def _draft(self) -> str:
        draft = "".join(self.dice.choice("xyz") for _ in range(5))
        # In one turn, before what is typed is followed.
        self.page.get_by_label("Source text").evaluate(_TYPE_AND_LEAVE, draft)
        self.want = replace(self.want, draft=draft)
        return draft

    def _switch(self) -> str:
        self.page.locator(".st-key-pages").get_by_role("link", name="Masks").click()
        self.page.get_by_role("heading", name="Masks").wait_for(state="attached")
        if goes_back := self.dice.random() < 0.5:
            self.page.go_back()
        else:
            self.page.locator(".st-key-pages").get_by_role("link", name="Explore").click()
        self.page.locator(".st-key-picture .viewer").wait_for()
        self.settled()
        return "and back" if goes_back else "and to Explore"

    def _key(self) -> str:
        key = self.dice.choice(["ArrowRight", "ArrowLeft", "Home", "End"])
        self.page.evaluate("() => document.activeElement?.blur()")
        self.page.keyboard.press(key)
        last = self._trace.n_steps - 1
        to = {"ArrowRight": self.want.step + 1, "ArrowLeft": self.want.step - 1, "Home": 0, "End": last}[key]
        self.want = replace(self.want, step=max(0, min(last, to)))
        return key

    def _token(self) -> str:
        step = self.dice.randrange(self._trace.n_steps)
        self.page.locator(".viewer [data-part=output] .token").nth(step).click()
        self.want = replace(self.want, step=step)
        if self.want.kind != "encoder":
            self._pin((step, None))
        return str(step + 1)

    def _source(self) -> str:
        place = self.dice.randrange(len(self._trace.source_tokens))
        self.page.locator(".viewer [data-part=source] .token").nth(place).click()
        if self.want.kind != "decoder":
            self._pin((None, place))
        return str(place + 1)

    def _cell(self) -> str:
        rows, columns = self._trace.attentions[self.want.kind].weights.shape[2:]
        row = self.dice.randrange(rows if self.want.kind == "encoder" else self.want.step + 1)
        # What the decoder reads later is not there yet.
        column = self.dice.randrange(self.want.step + 1 if self.want.kind == "decoder" else columns)
        x, y, _ = click_chart(self.page, self.page.locator(".viewer [data-part=focus]"), lambda _: (column, row))
        row, column = round(y), round(x)
        self._pin((row, column))
        return f"{row + 1},{column + 1}"

    def _play(self) -> str:
        self.page.locator(".viewer [data-part=play]").click()
        self.page.wait_for_timeout(1000 * self.dice.uniform(0.3, 1.6))
        # In one turn: it may come to the end by itself, and a press would begin it again.
        pause = "(button) => button.getAttribute('aria-label') === 'Pause' && button.click()"
        self.page.locator(".viewer [data-part=play]").evaluate(pause)
        until = self.page.evaluate(_STATE)["step"]
        self.wanted += [replace(self.want, step=step) for step in (0, *range(self.want.step, until + 1), *range(until + 1))]
        self.want = replace(self.want, step=until)
        return f"to {self.want.step + 1}"

    def _choose(self, **change: Any) -> None:
        is_other = change.get("kind", self.want.kind) != self.want.kind
        self.want = replace(self.want, **change, **({"pin": ()} if is_other else {}))

    def _pin(self, pin: tuple[int | None, int | None]) -> None:
        self.want = replace(self.want, pin=() if self.want.pin == pin else pin)

    # ---- what is there

    @property
    def _trace(self) -> Trace:
        return _run(self.want.text)

    def at_rest(self) -> list[str]:
        """Where the page differs once nothing changes it any more. On a slow line it looks at rest between the end of one run
        and the server's first word about the next press; a press that is lost stays lost."""
        end = time.monotonic() + 10
        while (bad := self.differences(self.settled())) and time.monotonic() < end:
            self.page.wait_for_timeout(200)
        return bad

    def settled(self) -> dict[str, Any]:
        """The state of the page once it rests."""
        before, since, end = None, time.monotonic(), time.monotonic() + _REST_S
        while time.monotonic() < end:
            try:
                now = self.page.evaluate(_STATE) if self.page.evaluate(_REST) else None
            except Error:  # it is drawn meanwhile
                now = None
            if now is None or now["busy"] or now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > 0.5:
                return now
            self.page.wait_for_timeout(50)
        raise AssertionError(f"the page did not come to rest: {before}; {self.page.evaluate(_UNREST)}")

    def differences(self, found: dict[str, Any]) -> list[str]:
        """Where boxes, picture, sentence and address are not what was pressed last."""
        want, bad = self.want, []
        for name in ("kind", "layer", "head", "step", "lines", "measure", "tab"):
            if found[name] != getattr(want, name):
                bad.append(f"{name} is {found[name]!r}, pressed {getattr(want, name)!r}")
        # Until somebody chooses, the viewer does, as when a run has ended.
        if want.lines not in ("auto", found["lineBox"]):
            bad.append(f"the box of lines says {found['lineBox']!r}, chosen {want.lines!r}")
        if found["text"] != want.typed:
            bad.append(f"the box has {found['text']!r}, typed {want.typed!r}")
        if found["isPinned"] != bool(want.pin):
            bad.append(f"pinned: {found['isPinned']}, pressed {want.pin}")
        if want.kind != "encoder" and want.head.isdigit():
            head = f"layer {want.layer + 1} head {int(want.head) + 1}"
            if head not in found["sentence"] or f"tep {want.step + 1} of" not in found["sentence"]:
                bad.append(f"the sentence says {found['sentence']!r}")
        if found["steps"] != self._trace.n_steps:
            bad.append(f"{found['steps']} steps, of {want.text!r}")
        elif (words := self._other_numbers(found["z"])) is not None:
            bad.append(words)
        said = {key: values[0] for key, values in parse_qs(urlsplit(self.page.url).query).items()}
        defaults = {"text": "reversethis", "pin": "", "measure": "weights", "explore_tab": TABS[0]}
        defaults |= {"kind": KIND_TITLES["cross"]}
        for key, word in want.in_address().items():
            if (key in said or key in defaults) and said.get(key, defaults.get(key)) != word:
                bad.append(f"the address has {key}={said.get(key)!r}, pressed {word!r}")
        return bad

    def gone_back(self) -> list[str]:
        """Where a frame since the burst began showed again what had been pressed before."""
        frames: list[dict[str, Any]] = self.page.evaluate("() => window.seen.splice(0)")
        wanted, bad = [want.in_frame() for want in self.wanted], []
        for name in wanted[0]:
            shown = _changes(frame[name] for frame in frames if frame.get(name) is not None)
            pressed = _changes(want[name] for want in wanted)
            left = iter(pressed)
            if not all(value in left for value in shown):
                bad.append(f"{name} went {shown}, pressed {pressed}")
        if bad:
            print(json.dumps({"frames": frames, "wanted": wanted}), file=sys.stderr, flush=True)
        return bad

    def _other_numbers(self, z: Any) -> str | None:
        """Where the large map's numbers are not the trace's, as far as the steps have come."""
        want = self.want
        if want.measure != "weights":
            return None
        attention = self._trace.attentions[want.kind]
        head: Head = int(want.head) if want.head.isdigit() else "max" if want.head == "max" else "mean"
        weights, masked = attention.head(want.layer, head), attention.head_reasons(want.layer, head) > 0
        until = len(weights) if want.kind == "encoder" else want.step + 1
        right = np.where(masked | (np.arange(len(weights))[:, None] >= until), np.nan, weights)
        drawn = np.array(z, float) if z else np.zeros(0)
        if drawn.shape != right.shape or not np.allclose(drawn, right, atol=1e-6, equal_nan=True):
            return f"the map has other numbers than {want.kind}.{want.layer + 1}.{head} at step {want.step + 1}"
        return None


def click_chart(page: Page, chart: Locator, place: Callable[[Any], tuple[float, float]]) -> tuple[float, float, Any]:
    """Clicks at a place of a chart's axes, where it is now; `place` is given the chart's `layout.meta`.

    Returns:
        The place that was under the hand as it pressed, and the `layout.meta` of then: what another text brings in this very
        moment is what a person presses.
    """
    why = ""
    for _ in range(_TRIES):
        chart.scroll_into_view_if_needed()
        meta = chart.evaluate("(chart) => chart.layout.meta")
        x, y = chart.evaluate(_PLACE, list(place(meta)))
        chart.evaluate(_NOTE_PRESS)
        try:
            # Another text on its way moves and shortens what is there: within the chart, once that stands still.
            chart.click(position={"x": x, "y": y}, timeout=_PATIENCE_MS)
        except TimeoutError as error:  # nothing was pressed: the place is another by now
            why = str(error)
            continue
        at: tuple[float, float, Any] = chart.evaluate("() => window.__pressed")
        return at
    raise AssertionError(f"the chart does not stand still: {why}")


def _changes(values: Iterable[Any]) -> list[Any]:
    """Values one after another, each once as long as it stays."""
    return [value for value, _ in groupby(values)]


@cache
def _model() -> Any:
    return tv.load_model("reverse", device="cpu")


@cache
def _run(text: str) -> Trace:
    return tv.decode(_model(), text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bursts", type=int, default=40)
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--url", help="of a running app; by default one is started")
    parser.add_argument("--only", default="", help="controls, as kind,tab,text")
    options = parser.parse_args()
    n_wrong = 0
    with ExitStack() as stack:
        url = options.url or stack.enter_context(served.server()).url
        url = stack.enter_context(slow_line(url, options.delay))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=served.chromium(), args=served.FLAGS)
        context = browser.new_context(viewport={"width": 1440, "height": 1400}, reduced_motion="reduce")
        context.add_cookies([{"name": COOKIE[0], "value": COOKIE[1], "domain": "localhost", "path": "/"}])
        context.add_init_script(LISTEN)
        page = context.new_page()
        page.set_default_timeout(1000 * _REST_S)
        page.on("pageerror", lambda error: print("a script failed:", error, flush=True))
        page.goto(url + PATH)
        bursts = Bursts(page, random.Random(options.seed), tuple(filter(None, options.only.split(","))))
        bursts.begin()
        for number in range(options.bursts):
            bad = bursts.burst()
            bad += bursts.reload() if number % 10 == 9 else []
            if bad:
                n_wrong += 1
                print(f"burst {number}: {'; '.join(bad)}", flush=True)
                bursts.places.clear()
                page.goto(page.url)
                bursts.begin()
            if number % 20 == 19:
                print(f"{number + 1} bursts, {bursts.n_presses} presses, {n_wrong} wrong", file=sys.stderr, flush=True)
        browser.close()
    result = {
        "bursts": options.bursts,
        "delay": options.delay,
        "seed": options.seed,
        "presses": bursts.n_presses,
        "wrong": n_wrong,
    }
    print(json.dumps(result))
    return n_wrong > 0


if __name__ == "__main__":
    sys.exit(main())
