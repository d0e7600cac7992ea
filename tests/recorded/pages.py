"""States of pages but Explore, whose picture the browser draws: what is set on each, which controls there are, and what its
charts hold.

A page is driven by what one reads on it: the label of a control, the words of an option, the title of a tab. No key, no link
and no private name is used, but for what a component alone can set (`Address`). Where a label changes, change it here.
"""

import json
import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Widget

from tests import inside
from tests.inside import visit
from tests.recorded.fixture import Flat, differences, drawn_by
from tests.recorded.runs import LATER, tiny_folder
from tests.until import until
from transformer_viz.views import pages, path
from transformer_viz.views.cache.store import store

APP = Path(__file__).resolve().parents[2] / "app.py"
_CHOICES = ("selectbox", "button_group", "radio", "multiselect")
_BUTTONS = ("button", "download_button", "link_button")
_NO_STATE = ("Device", "Look up a term")
"""Of the machine, and of nothing that is shown."""
_OF_A_CHART = re.compile(r"charts\.(\d+)\.")


@contextmanager
def alone(folder: Path, models: Path) -> Generator[None]:
    """The app finds the shipped checkpoints, the models of a folder, and nothing else; the browser keeps one cookie."""
    places = {"TRANSFORMER_VIZ_MODELS": models, "HF_HUB_CACHE": folder, "TRANSFORMER_VIZ_SURVEYS": folder}
    environment = {**{name: str(place) for name, place in places.items()}, "TRANSFORMER_VIZ_CHECKPOINTS": ""}
    cookies = patch.object(type(st.context), "cookies", inside.WITHOUT_A_QUESTION)  # AppTest has none; it gives a mock
    packages = patch.object(manifest_scanner, "scan_component_manifests", _packages)
    trained = patch("transformer_viz.app_folders.trained", lambda: folder)
    with patch.dict(os.environ, environment), cookies, packages, trained:
        yield


def forget() -> None:
    """Checkpoints and runs are cached by name: those of other tests are other ones."""
    st.cache_resource.clear()
    store.results.clear()


_packages = cache(manifest_scanner.scan_component_manifests)
"""Each new AppTest looks for components in what every installed package says: half a second, and always the same."""


def opened(page: str, **address: str) -> AppTest:
    """A new session on a page, by the title of the page, with all controls. The address sets what a component alone can set."""
    at = AppTest.from_file(str(APP), default_timeout=120)
    # Not by the address: what is bare opens otherwise.
    at.session_state["all_controls"] = True
    for name, value in address.items():
        at.query_params[name] = value
    return _ended(visit(at, path(next(view for view in pages() if page == view.TITLE))))


def set_to(at: AppTest, label: str, value: Any) -> AppTest:
    """Gives the control with this label a value: text, a number, on or off, or the words of an option."""
    node = _labelled(at, label)
    if getattr(node, "type", "") in _CHOICES:
        value = next((option for option in node.options if option == value or option.startswith(f"{value} · ")), value)
        assert value in node.options, f"{label!r} has {node.options} and not {value!r}"
        # As the browser says it, by the words; AppTest itself wants the value behind them, which only the page knows.
        state = WidgetState(id=node.id)
        if node.type in ("button_group", "multiselect"):
            state.string_array_value.data[:] = [value]
        else:
            state.string_value = value
        node.__class__ = type("Chosen", (type(node),), {"_widget_state": property(lambda self: state)})
    else:
        node.set_value(value)
    return _ended(at.run())


def press(at: AppTest, label: str) -> AppTest:
    """Presses a button, and waits until what it began is done."""
    return _ended(_labelled(at, label).set_value(True).run())


def open_tab(at: AppTest, title: str) -> AppTest:
    """Opens a tab, where its page makes those alone that are open."""
    for titles, key in _tabs(at):
        if title in titles:
            if key:
                at.session_state[key] = title
                at.run()
            return _ended(at)
    raise AssertionError(f"there is no tab {title!r}")


def seen(at: AppTest) -> dict[str, Any]:
    """The controls by their labels, and the charts."""
    controls, buttons = {}, []
    for node in _nodes(at):
        label, kind = _label(node), getattr(node, "type", "")
        if kind in _BUTTONS:
            buttons.append(label)
        elif isinstance(node, Widget) and label not in ("", *_NO_STATE) and kind != "file_uploader":
            controls[label] = {"set": _shown(node), "options": _options(node)}
    tabs = [titles for titles, _ in _tabs(at)]
    charts = {str(place): figure for place, figure in enumerate(figures_on(at))}
    return {"controls": controls, "buttons": sorted(buttons), "tabs": tabs, "charts": charts}


def aligned(title: str, recorded: Flat, now: Flat) -> Flat:
    """The charts of a page under the places that the same charts had, wherever they stand today."""
    charts: dict[str, Flat] = {}
    for name, leaf in now.items():
        if match := _OF_A_CHART.match(name):
            charts.setdefault(match[1], {})[name[match.end() :]] = leaf
    placed = {name: leaf for name, leaf in now.items() if not _OF_A_CHART.match(name)}
    for place in dict.fromkeys(match[1] for name in recorded if (match := _OF_A_CHART.match(name))):
        at = f"charts.{place}."
        was = {name.removeprefix(at): leaf for name, leaf in recorded.items() if name.startswith(at)}
        if charts:
            here = min(charts, key=lambda one: (len(differences(title, was, charts[one])), one != place))
            placed |= {at + name: leaf for name, leaf in charts.pop(here).items()}
    return placed | {f"charts.new {place}.{name}": leaf for place, chart in charts.items() for name, leaf in chart.items()}


def figures_on(at: AppTest) -> list[Flat]:
    """What every figure holds that the page has sent, whatever element draws it."""
    sent = [content for node in _nodes(at) for content in _sent(getattr(node, "proto", None))]
    return [drawn_by(figure) for content in sent for figure in _figures(content)]


def _figures(content: Any) -> Iterator[Mapping[str, Any]]:
    """Plotly's figures, at any depth of plain data."""
    if isinstance(content, Mapping):
        if isinstance(content.get("data"), list) and isinstance(content.get("layout"), Mapping):
            yield content
        else:
            for part in content.values():
                yield from _figures(part)
    elif isinstance(content, list):
        for part in content:
            yield from _figures(part)


def _sent(proto: Any) -> Iterator[Any]:
    """The plain data of an element: of a component, or of Streamlit's own chart."""
    for field in ("json", "bytes", "spec", "figure"):
        value = getattr(proto, field, None)
        value = getattr(value, "spec", value)
        if isinstance(value, str | bytes) and value[:1] in ("{", b"{", "[", b"["):
            yield json.loads(value)


def _nodes(at: AppTest) -> list[Any]:
    """All that is to be seen."""
    assert not at.exception, at.exception
    return [node for block in (at.main, at.sidebar) for node in _seen(block)]


def _seen(node: Any) -> Iterator[Any]:
    """Without the boxes that hold for the link what no widget has."""
    yield node
    for child in getattr(node, "children", {}).values():
        if "in-link" not in str(getattr(getattr(child, "proto", None), "id", "")):
            yield from _seen(child)


def _label(node: Any) -> str:
    return getattr(node, "label", "") or getattr(getattr(node, "proto", None), "label", "")


def _labelled(at: AppTest, label: str) -> Any:
    nodes = {_label(node): node for node in reversed(_nodes(at)) if isinstance(node, Widget)}
    assert label in nodes, f"there is no {label!r} among {[*nodes]}"
    return nodes[label]


def _options(node: Any) -> list[str]:
    """Without those of an installed translator, and of checkpoints that came later."""
    options = getattr(node, "options", ())
    return [option for option in options if not option.startswith("firefox:") and option.split(" · ")[0] not in LATER]


def _shown(node: Any) -> Any:
    """What one sees in a control."""
    if node.type in ("button_group", "multiselect"):
        return [node.options[place] for place in node.indices]
    if node.type in _CHOICES:
        return None if node.index is None else node.options[node.index]
    return node.value


def _tabs(at: AppTest) -> list[tuple[list[str], str]]:
    """Titles of each row of tabs, and the key in the session by which one is opened; no key where all are made."""
    rows = []
    for node in _nodes(at):
        proto: Any = getattr(node, "proto", None)
        if type(proto).__name__ == "Block" and proto.WhichOneof("type") == "tab_container":
            titles = [child.label for child in node.children.values()]
            rows.append((titles, proto.tab_container.id.split("-", 2)[-1]))
        rows += [(sent["titles"], sent["control"]) for sent in _sent(proto) if isinstance(sent, dict) and "titles" in sent]
    return rows


def _ended(at: AppTest) -> AppTest:
    """Waits while something that takes long can be stopped."""

    def is_done() -> bool:
        if "Stop" not in map(_label, _nodes(at)):
            return True
        at.run()
        return False

    until(is_done)
    return at


class Tab(str):
    """The title of a tab, which is opened."""


class Address(dict[str, str]):
    """What a component alone can set, in the address with which the page is opened."""


def state(page: str, *steps: Any) -> Callable[[Path], dict[str, Any]]:
    """A state of a page: what is set by its label, what is pressed, which tabs are opened, one after the other."""

    def entered(folder: Path) -> dict[str, Any]:
        with alone(folder, tiny_folder()):
            address = steps[0] if steps and isinstance(steps[0], Address) else {}
            at = opened(page, **address)
            for step in steps[bool(address) :]:
                if isinstance(step, Tab):
                    open_tab(at, step)
                elif isinstance(step, str):
                    press(at, step)
                else:
                    for label, value in step.items():
                        set_to(at, label, value)
            return seen(at)

    return entered


MODEL, TARGETS = "Checkpoint", "Target strings, one a line (optional)"
TWO = {"Source strings, one a line": "hello\nab"}
PAGES = ("Masks", "Compare", "Train", "Over many texts")
STATES: dict[str, Callable[[Path], dict[str, Any]]] = {
    **{f"{page}, as it opens": state(page) for page in PAGES},
    "Masks, large": state("Masks", TWO, {"Show": "this sentence, large", "Sentence": "2: ab"}),
    "Masks, a mistake": state("Masks", TWO, {"Mistake": "Padding as invalid ⊗ invalid"}),
    "Masks, targets": state("Masks", TWO, {TARGETS: "olleh\nba"}, Tab("Loss")),
    **{f"Masks, {tab}": state("Masks", TWO, Tab(tab)) for tab in ("Scores to weights", "Mistakes")},
    "Masks, changed": state("Masks", TWO, Tab("Change and run again"), {"Edits as text": "cross:1-2, encoder.1.2:zero"}),
    "Masks, a head off": state("Masks", TWO, Tab("Change and run again"), "L1 H1 off"),
    "Masks, a model": state("Masks", {MODEL: "tiny-gpt2"}),
    "Compare, after training": state("Compare", "After training and at its 141st step"),
    "Compare, two models": state("Compare", "Two models of different size", "Swap A and B"),
    "Compare, two strategies": state("Compare", "Greedy decoding and beam search"),
    "Compare, patched": state("Compare", "Two letters changed", "Patch A into B", {"What is put": "layers of A"}),
    "Compare, words": state(
        "Compare", "The same day, written in two orders", {"Tokens or words": "words", "B: edits": "cross.1.1:zero"}
    ),
    "Train, two sentences": state(
        "Train",
        {"Task": "german-toy", "Variant": "post-norm"},
        {"d_model": 128, "d_ff": 256, "Heads": 4, "Encoder": 2, "Decoder": 2, "Steps": 60, "Drawing of the model": True},
    ),
    "Over many texts, compared": state(
        "Over many texts", {"Compare with": "numbers", "Heads by": "heads by entropy, of the largest possible"}
    ),
    **{
        f"Over many texts, {tab}": state("Over many texts", {"Survey": "reverse-small"}, Tab(tab))
        for tab in ("Agreement", "Outputs", "On trial")
    },
    "Train, how it learned": state("Train", Address(learned="true", checkpoint="reverse-small", kind="encoder", head="2")),
}
