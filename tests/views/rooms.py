"""Every room of every page: as it opens, each of its tabs, and each way in which a tab can stand."""

from collections.abc import Callable, Iterator

from streamlit.testing.v1 import AppTest

from tests.views.widgets import TABS, Widget, controls
from transformer_viz.views import pages

PAGES = [None if view.ORDER == 0 else view.TITLE.lower() for view in pages()]
OPENINGS: dict[str | None, dict[str, str]] = {
    None: {"text": "hello"},
    "masks": {"sources": "hello\nab"},
    "replay": {"text": "hello", "checkpoint": "reverse-small"},
}
"""What a page is opened with, so that it is quick; another page opens with nothing."""
_MOST_WAYS = 6
_found: dict[str | None, list[dict[str, object]]] = {}
# Plain data, the same for every test: finding them takes as many runs of the app as there are rooms.


def rooms(start: Callable[..., AppTest], page: str | None) -> Iterator[AppTest]:
    """A session of its own for each room."""
    for settings in ways(start, page):
        yield enter(start, page, settings)


def enter(start: Callable[..., AppTest], page: str | None, settings: dict[str, object]) -> AppTest:
    """The page with these values in its session."""
    at = start(page, **OPENINGS.get(page, {}))
    for key, value in settings.items():
        at.session_state[key] = value
    if settings:
        at.run()
    assert not at.exception, (page, settings, at.exception)
    return at


def ways(start: Callable[..., AppTest], page: str | None) -> list[dict[str, object]]:
    """What to set for each room: nothing, each tab, and in each tab every way of a switch that only it has."""
    if page in _found:
        return _found[page]
    found = _found[page] = [{}]
    outside = enter(start, page, {})
    known = {widget.key for widget in controls(outside)}
    for tabs in (widget for widget in controls(outside) if widget.type == TABS):
        for label in tabs.options:
            found.append({tabs.key: label})
            inside = enter(start, page, {tabs.key: label})
            for switch in controls(inside):
                if switch.type == "ButtonGroup" and switch.key not in known and len(switch.options) <= _MOST_WAYS:
                    found += [{tabs.key: label, switch.key: value} for value in _values(inside, switch)]
    return found


def _values(at: AppTest, switch: Widget) -> list[object]:
    """The values behind the words on a switch, other than the one that it has: those whose words are the option itself."""
    return [option for option in switch.options if option != switch.node.formatted_values[0] and _is_plain(at, switch)]


def _is_plain(at: AppTest, switch: Widget) -> bool:
    return at.session_state[switch.key] == switch.node.formatted_values[0]
