"""Every room of every page: as it opens, each of its tabs, and each way in which a tab can stand."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from streamlit.testing.v1 import AppTest

from tests.needs import slow
from tests.views.widgets import TABS, Widget, controls
from transformer_viz import decode, load_checkpoint, load_trace
from transformer_viz.trace.store import to_bytes
from transformer_viz.views import pages, path
from transformer_viz.views.components.opened import Opened

PAGES = [None if view.ORDER == 0 else path(view) for view in pages()]
CASES = [slow(page) if page in (None, "train") else page for page in PAGES]
"""Of a test that goes through all rooms of a page; those with the most rooms are slow."""
OPENINGS: dict[str | None, dict[str, str]] = {
    None: {"text": "hello", "all_controls": "true"},
    "masks": {"sources": "hello\nab"},
    "compare": {"text": "hello", "checkpoint": "reverse-small", "b_text": "hallo", "b_checkpoint": "reverse-small"},
}
"""What a page is opened with, so that it is quick; another page opens with nothing."""
MORE: dict[str | None, list[dict[str, object]]] = {
    None: [
        {"where": True},
        {"measure": "cause"},
        {"decoding": "beam"},
        {"decoding": "sample"},
        {"decoding": "forced"},
    ],
    "survey": [{"survey_beside": "reverse-small", "survey_number": "entropy_share"}],
    "train": [{"where": True}, {"learned": True, "text": "hello", "checkpoint": "reverse-small"}],
    "compare": [
        {"a_strategy": "beam", "b_strategy": "beam"},
        {"a_strategy": "sample", "b_strategy": "sample"},
        {"patching": True, "text": "zzzzz", "b_text": "aaaaa", "checkpoint": "reverse", "b_checkpoint": "reverse"},
    ],
}
"""Rooms that no tab leads to."""
HOLDING: dict[str | None, list[tuple[str, ...]]] = {"compare": [("run", "tree")], None: [("run", "tree"), ("tree", "run")]}
"""Pages that look otherwise in a session that holds trace files: which ones, the one that was opened last first."""
_MOST_WAYS = 6


@dataclass(frozen=True)
class There:
    """A widget, by its key, what it is, and whether the link has it."""

    key: str
    type: str
    is_bound: bool


@dataclass(frozen=True)
class Room:
    """What to set in a session for it (nothing, a tab, or a way of a switch that only this tab has), and what is there."""

    settings: dict[str, object]
    widgets: frozenset[There]


_found: dict[str | None, list[Room]] = {}
# Plain data, the same for every test: finding them takes as many sessions as there are rooms. Tests that ask for them are in
# one group, so that they run in one process.


def rooms(start: Callable[..., AppTest], page: str | None) -> list[Room]:
    """Every room of a page, each entered once in a session of its own."""
    if page not in _found:
        looks_at = {"checkpoint": "trace file"} if page is None else {}
        given: list[dict[str, object]] = [{"opened": files(*names), **looks_at} for names in HOLDING.get(page, [])]
        held = [room for one in given for room in _rooms(start, page, one)]
        more = [_room(enter(start, page, settings), settings) for settings in MORE.get(page, [])]
        _found[page] = [*_rooms(start, page, {}), *more, *held]
    return _found[page]


def enter(start: Callable[..., AppTest], page: str | None, settings: dict[str, object]) -> AppTest:
    """The page with these values in its session."""
    settings = dict(settings)
    held = settings.pop("opened", {})
    assert isinstance(held, dict)
    at = start(page, held, **OPENINGS.get(page, {}))
    asked = {key: settings.pop(key) for key in ("patching",) if key in settings}
    # What is asked for is asked for of what stands on the page.
    for group in filter(None, (settings, asked)):
        for key, value in group.items():
            at.session_state[key] = value
        at.run()
    return at


def files(*names: str) -> dict[str, Opened]:
    """What a session holds that opened these."""
    return {name: _file(name) for name in names}


@cache
def _file(name: str) -> Opened:
    checkpoint = load_checkpoint("reverse", "cpu")
    trace = decode(checkpoint, "hello") if name == "run" else decode(checkpoint, "abc", strategy="beam", beam_size=3)
    return Opened(load_trace(to_bytes(trace)), f"{name}.npz", f"f-{name}")


def _rooms(start: Callable[..., AppTest], page: str | None, given: dict[str, object]) -> list[Room]:
    outside = enter(start, page, given)
    found = [_room(outside, given)]
    known = {widget.key for widget in controls(outside)}
    for tabs in (widget for widget in controls(outside) if widget.type == TABS):
        for label in tabs.options:
            inside = enter(start, page, {**given, tabs.key: label})
            found.append(_room(inside, {**given, tabs.key: label}))
            for switch in controls(inside):
                if switch.type == "ButtonGroup" and switch.key not in known and len(switch.options) <= _MOST_WAYS:
                    ways = [{**given, tabs.key: label, switch.key: value} for value in _values(inside, switch)]
                    found += [_room(enter(start, page, way), way) for way in ways]
    return found


def _room(at: AppTest, settings: dict[str, object]) -> Room:
    return Room(settings, frozenset(There(widget.key, widget.type, widget.is_bound) for widget in controls(at)))


def _values(at: AppTest, switch: Widget) -> list[object]:
    """The values behind the words on a switch, other than the one that it has: those whose words are the option itself."""
    return [option for option in switch.options if option != switch.node.formatted_values[0] and _is_plain(at, switch)]


def _is_plain(at: AppTest, switch: Widget) -> bool:
    return at.session_state[switch.key] == switch.node.formatted_values[0]
