"""Every room of every page: as it opens, each of its tabs, and each way in which a tab can stand."""

from collections.abc import Callable, Iterator
from functools import cache

from streamlit.testing.v1 import AppTest

from tests.views.widgets import TABS, Widget, controls
from transformer_viz import decode, load_checkpoint, load_trace
from transformer_viz.trace.store import to_bytes
from transformer_viz.views import pages
from transformer_viz.views.parts.opened import Opened

PAGES = [None if view.ORDER == 0 else view.TITLE.lower() for view in pages()]
OPENINGS: dict[str | None, dict[str, str]] = {
    None: {"text": "hello"},
    "masks": {"sources": "hello\nab"},
    "replay": {"text": "hello", "checkpoint": "reverse-small"},
    "compare": {"text": "hello", "checkpoint": "reverse-small", "b_text": "hallo", "b_checkpoint": "reverse-small"},
}
"""What a page is opened with, so that it is quick; another page opens with nothing."""
MORE: dict[str | None, list[dict[str, object]]] = {
    "compare": [{"a_strategy": name, "b_strategy": name} for name in ("beam", "sample")],
}
"""Rooms that no tab leads to."""
HOLDING: dict[str | None, list[tuple[str, ...]]] = {"compare": [("run", "tree")], "open": [("run", "tree"), ("tree", "run")]}
"""Pages that look otherwise in a session that holds trace files: which ones, the one that was opened last first."""
_MOST_WAYS = 6
_found: dict[str | None, list[dict[str, object]]] = {}
# Plain data, the same for every test: finding them takes as many runs of the app as there are rooms.


def rooms(start: Callable[..., AppTest], page: str | None) -> Iterator[AppTest]:
    """A session of its own for each room."""
    for settings in ways(start, page):
        yield enter(start, page, settings)


def enter(start: Callable[..., AppTest], page: str | None, settings: dict[str, object]) -> AppTest:
    """The page with these values in its session."""
    settings = dict(settings)
    held = settings.pop("opened", {})
    assert isinstance(held, dict)
    at = start(page, held, **OPENINGS.get(page, {}))
    for key, value in settings.items():
        at.session_state[key] = value
    if settings:
        at.run()
    assert not at.exception, (page, settings, at.exception)
    return at


def ways(start: Callable[..., AppTest], page: str | None) -> list[dict[str, object]]:
    """What to set for each room: nothing, each tab, and in each tab every way of a switch that only it has."""
    if page not in _found:
        held = [way for names in HOLDING.get(page, []) for way in _ways(start, page, {"opened": files(*names)})]
        _found[page] = [*_ways(start, page, {}), *MORE.get(page, []), *held]
    return _found[page]


def files(*names: str) -> dict[str, Opened]:
    """What a session holds that opened these."""
    return {name: _file(name) for name in names}


@cache
def _file(name: str) -> Opened:
    checkpoint = load_checkpoint("reverse", "cpu")
    trace = decode(checkpoint, "hello") if name == "run" else decode(checkpoint, "abc", strategy="beam", beam_size=3)
    return Opened(load_trace(to_bytes(trace)), f"{name}.npz", f"f-{name}")


def _ways(start: Callable[..., AppTest], page: str | None, given: dict[str, object]) -> list[dict[str, object]]:
    found = [given]
    outside = enter(start, page, given)
    known = {widget.key for widget in controls(outside)}
    for tabs in (widget for widget in controls(outside) if widget.type == TABS):
        for label in tabs.options:
            found.append({**given, tabs.key: label})
            inside = enter(start, page, {**given, tabs.key: label})
            for switch in controls(inside):
                if switch.type == "ButtonGroup" and switch.key not in known and len(switch.options) <= _MOST_WAYS:
                    found += [{**given, tabs.key: label, switch.key: value} for value in _values(inside, switch)]
    return found


def _values(at: AppTest, switch: Widget) -> list[object]:
    """The values behind the words on a switch, other than the one that it has: those whose words are the option itself."""
    return [option for option in switch.options if option != switch.node.formatted_values[0] and _is_plain(at, switch)]


def _is_plain(at: AppTest, switch: Widget) -> bool:
    return at.session_state[switch.key] == switch.node.formatted_values[0]
