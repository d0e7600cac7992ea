"""Every widget that a page has, whatever its type, found in what the page sent to the browser."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

from tests.inside import tree
from tests.views import viewer
from tests.views.drawn import is_chart, pictures, read

ACTIONS = ("Button", "DownloadButton", "LinkButton", "PageLink", "MenuButton")
"""They do something once; what they did is in other controls."""
_SENT = ("player", "compare-shown", "compare-table")
"""Components of ours that are seen as what they were sent."""
_UNSEEN = ("history", "history-go", "address")
"""Components that write the address and its history."""
TABS, FOLD = "tab_container", "Expandable"
TYPED = {
    "text": "abc",
    "b_text": "cab",
    "what_if_begin": "xy",
    "what_if_target": "cab",
    "sources": "hello\nab\nx<b>$y$",
    "targets": "olleh\n\nba",
    "edits": "cross:1-2, encoder.1.2:zero",
    "train_name": "mine-7",
    "train_probe": "olleh",
}
"""What a person might type; another text box gets `abc`."""


@dataclass(frozen=True)
class Widget:
    """One widget: its key in the session ("" without one), what it is, and where it stands in AppTest's tree."""

    key: str
    type: str
    node: Any
    options: tuple[str, ...] = ()
    is_bound: bool = False
    """Whether the link has its value."""


def widgets(at: AppTest) -> list[Widget]:
    """All that a person can set or press, in the order of the page."""
    # That it is so is tried of each: test_links_open_the_same.py.
    decided = at.session_state["link_decided"]
    return [replace(widget, is_bound=widget.key in decided or widget.type == "MultiSelect") for widget in _found(tree(at))]


def controls(at: AppTest) -> list[Widget]:
    """Without buttons: what has a value that a person sets."""
    return [widget for widget in widgets(at) if widget.type not in ACTIONS and widget.key not in _UNSEEN]


def _found(node: Any) -> Iterator[Widget]:
    proto: Any = getattr(node, "proto", None)
    kind = type(proto).__name__
    if kind == "Block" and proto.WhichOneof("type"):
        # A container may have a key; only tabs and popovers that report themselves are widgets.
        inner = getattr(proto, proto.WhichOneof("type"), None)
        if inner is not None and getattr(inner, "id", ""):
            titles = tuple(tab.label for tab in getattr(node, "children", {}).values() if type(tab).__name__ == "Tab")
            yield Widget(_key(inner.id), proto.WhichOneof("type"), node, titles)
    elif is_chart(proto) and read(proto).clicks is None:
        pass
    elif getattr(proto, "id", "") and kind != "Block":
        options = tuple(getattr(node, "options", ()))
        yield Widget(getattr(node, "key", None) or _key(proto.id), kind, node, options)
    for child in getattr(node, "children", {}).values():
        yield from _found(child)


def _key(widget_id: str) -> str:
    """`$$ID-hash-key`; a widget without a key has the word None in its place."""
    key = widget_id.split("-", 2)[-1]
    return "" if key == "None" else key


def change(at: AppTest, widget: Widget) -> bool:
    """Gives it another value than it has, as a person would; whether it has another."""
    node = widget.node
    if widget.type == TABS:
        at.session_state[widget.key] = _other(widget.options, at.session_state[widget.key])
    elif widget.type == FOLD:
        at.session_state[widget.key] = not at.session_state[widget.key]
    elif widget.type == "Checkbox":
        node.set_value(not node.value)
    elif widget.type == "NumberInput":
        node.set_value(node.value + node.step if node.value + node.step <= node.max else node.value - node.step)
    elif widget.type in ("TextInput", "TextArea"):
        node.set_value(TYPED.get(widget.key, "abc"))
    elif widget.type == "Selectbox":
        if len(widget.options) < 2:
            return False
        _choose(node, _other(widget.options, widget.options[node.index]))
    elif widget.type == "ButtonGroup":
        _choose(node, _other(widget.options, widget.options[node.indices[0]]))
    elif widget.type == "MultiSelect":
        node.set_value([*node.value, next(option for option in widget.options if option not in node.values)])
    else:
        raise AssertionError(f"tests/views/widgets.py does not know how a person sets a {widget.type} ({widget.key})")
    return True


def _other(options: tuple[str, ...], now: str) -> str:
    return options[(options.index(now) + 1) % len(options)]


def _choose(node: Any, option: str) -> None:
    """As the browser says it, by the words on the option; AppTest itself wants the value, which only the page knows."""
    state = WidgetState(id=node.id)
    if node.type == "selectbox":
        state.string_value = option
    else:
        state.string_array_value.data[:] = [option]
    node.__class__ = type("Chosen", (type(node),), {"_widget_state": property(lambda self: state)})


def seen(at: AppTest) -> dict[str, Any]:
    """What a person sees: every control's value, every chart, every text and table."""
    values = {
        w.key: _value(at, w)
        for w in controls(at)
        if w.type not in ("BidiComponent", "FileUploader", "Dataframe", "Arrow", "popover")
    }
    texts = [
        str(getattr(e, "value", ""))
        for kind in ("markdown", "caption", "text", "warning", "error", "info", "success", "code")
        for e in at.get(kind)
    ]
    tables = [element.value.to_csv() for element in at.dataframe]
    player = [json.loads(w.node.proto.json) for w in widgets(at) if w.key in _SENT and w.node.proto.json]
    found = {"values": values, "charts": pictures(at), "texts": texts, "tables": tables, "player": [still(p) for p in player]}
    return {**found, "viewer": viewer.seen(at)} if viewer.has_viewer(at) else found


def still(content: dict[str, Any]) -> dict[str, Any]:
    """What the player is told, without what tells one run from another that is the same."""
    return {name: value for name, value in content.items() if name != "run"}


def _value(at: AppTest, widget: Widget) -> Any:
    return at.session_state[widget.key] if widget.type in (TABS, FOLD) else widget.node.value


def link_of(at: AppTest) -> dict[str, str]:
    """The page's link, as another browser would give it."""
    return {key: value[0] if isinstance(value, list) else value for key, value in viewer.link(at).items()}
