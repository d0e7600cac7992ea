"""The viewer of a page as AppTest has it: what it was sent, and a stand-in for what the browser tells of it."""

import base64
import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from tests.figures.sent import numbers
from tests.views.drawn import on_page
from transformer_viz.terms import COMBINED
from transformer_viz.views.cache import sent_runs
from transformer_viz.views.components.viewer import KEY, TEXT_KEY


def viewer(at: AppTest) -> dict[str, Any]:
    """What the viewer was sent: which run, with what it begins, and what the page says of it."""
    return _sent(at, KEY)


def has_viewer(at: AppTest) -> bool:
    """Whether the page shows a run."""
    return _has(at, KEY)


def content(at: AppTest) -> dict[str, Any]:
    """The numbers of the run, as the browser fetches them."""
    return _fetched(viewer(at)["content"])


def _fetched(name: str) -> dict[str, Any]:
    run = sent_runs.fetched(name)
    assert run is not None
    return json.loads(gzip.decompress(run.packed))


def compared(at: AppTest) -> dict[str, Any]:
    """What the browser fetches of the difference of two runs."""
    return _fetched(viewer(at)["beside"]["difference"])


def difference(at: AppTest) -> np.ndarray:
    """A − B as the browser makes it (`viewer/pair.js`, `viewer/difference.js`); NaN where not both have the cell."""
    sent, kind = viewer(at), viewer(at)["start"]["kind"]
    rows, columns = compared(at)["kinds"][kind]["pairs"]
    a, b = (_head_near(run["kinds"][kind], sent["start"]) for run in (content(at), _fetched(sent["beside"]["content"])))
    found = np.full((len(rows), len(columns)), np.nan, np.float32)
    for row, (a_row, b_row) in enumerate(rows):
        for column, (a_column, b_column) in enumerate(columns):
            if None not in (a_row, b_row, a_column, b_column):
                found[row, column] = a[a_row, a_column] - b[b_row, b_column]
    return found


def _head_near(of_kind: Mapping[str, Any], start: Mapping[str, Any]) -> np.ndarray:
    """The head in focus; of a run that has none, its last one."""
    numbers, layer, head = of_kind["numbers"], start["layer"], start["head"]
    layers = array(of_kind["weights"])[numbers.index(layer) if layer in numbers else -1]
    return layers[min(head, len(layers) - 1)] if isinstance(head, int) else getattr(layers, head)(0)


def part(at: AppTest, kind: str, layer: int, head: Any) -> dict[str, Any]:
    """The numbers of one head of a run that comes in parts."""
    run = sent_runs.fetched(viewer(at)["content"])
    assert run is not None
    rows, columns = content(at)["kinds"][kind]["shape"][2:]
    inflated = {name: zlib.decompress(base64.b64decode(text), -15) for name, text in run.part(kind, layer, head).items()}
    planes = np.frombuffer(inflated["weights"], np.uint8).reshape(4, -1)
    weights = np.ascontiguousarray(planes.T).view("<f4").reshape(rows, columns)
    return {"weights": weights.tolist(), "sentences": json.loads(inflated["sentences"])}


def one_head(at: AppTest) -> dict[str, Any]:
    """The figure of the head in focus, of a page whose figures only the server makes."""
    run, start = sent_runs.fetched(viewer(at)["content"]), viewer(at)["start"]
    assert run is not None
    return run.part(start["kind"], start["layer"], start["head"])


def array(typed: Mapping[str, Any]) -> np.ndarray:
    """An array of the content."""
    flat = np.frombuffer(base64.b64decode(typed["bdata"]), typed["dtype"])
    shape = typed.get("shape")
    return flat if shape is None else flat.reshape([int(n) for n in str(shape).split(",")])


def large_map(at: AppTest) -> np.ndarray:
    """The numbers of the large map, masked cells as they come."""
    start, kinds = viewer(at)["start"], content(at)["kinds"]
    kind = kinds[start["kind"]]
    measured = kind.get("measures", {}).get(start["measure"], {})
    layer = array(measured.get("weights", kind["weights"]))[kind["numbers"].index(start["layer"])]
    combined = {"mean": np.mean, "max": np.max}.get(start["head"])
    return layer[start["head"]] if combined is None else combined(layer, axis=0)


def tables(at: AppTest) -> dict[str, dict[str, Any]]:
    """The figures of a table of heads, by kind."""
    return {kind: of_kind["figure"] for kind, of_kind in content(at)["kinds"].items() if of_kind["figure"]}


def small_maps(at: AppTest) -> list[np.ndarray]:
    """The numbers of all heads of each kind, as one map."""
    measure = viewer(at)["start"]["measure"]
    kinds = content(at)["kinds"].values()
    return [heatmap(kind.get("measures", {}).get(measure, kind)["mosaic"]) for kind in kinds]


def templates(at: AppTest) -> list[dict[str, Any]]:
    """The figures of all kinds, into which the browser fills the numbers."""
    kinds = content(at)["kinds"].values()
    if "moment" in viewer(at)["start"]:
        of_moments = [one["mosaic"] for kind in kinds for one in kind["measures"].values()]
        return [*(kind["picture"] for kind in kinds), *of_moments]
    found = [figure for kind in kinds for figure in (kind["picture"]["wide"], kind["picture"]["narrow"], kind["mosaic"])]
    if viewer(at)["beside"]:
        difference = compared(at)
        found += [{"layout": kind[name]} for kind in difference["kinds"].values() for name in ("wide", "narrow")]
        found += difference["mosaics"].values()
    return [figure for figure in found if figure]


def heatmap(figure: Mapping[str, Any]) -> np.ndarray:
    """The numbers of a figure's first heatmap."""
    return array(next(trace["z"] for trace in figure["data"] if trace["type"] == "heatmap"))


def seen(at: AppTest) -> dict[str, Any]:
    """All that the picture is drawn from, without what tells one session from another."""
    ours = {"content", "run", "heard", "textHeard", "request", "address"}
    said = {name: value for name, value in viewer(at).items() if name not in ours}
    if beside := said["beside"]:
        said["beside"] = {**beside, "run": "", **{name: _fetched(beside[name]) for name in ("content", "difference")}}
    return {**said, "content": content(at)}


def link(at: AppTest) -> dict[str, Any]:
    """The address as the browser writes it (`viewer/app.js`, `viewer/address.js`)."""
    boxes = _sent(at, "address")
    if not has_viewer(at):
        return boxes["others"] | boxes["words"]
    words = written(at)
    if (
        _has(at, TEXT_KEY)
        and (typed := _sent(at, TEXT_KEY))["text"] != typed["default"]
        and len(typed["text"]) <= typed["longest"]
    ):
        words["text"] = typed["text"]
    return words | boxes["words"]


def others(at: AppTest) -> dict[str, Any]:
    """What the server thinks that the viewer writes."""
    return _sent(at, "address")["others"]


def written(at: AppTest) -> dict[str, str]:
    """What the picture writes of itself."""
    sent = viewer(at)
    defaults, kinds = sent["address"]["defaults"], sent["address"]["kinds"]
    # A table of heads has no step and no pin.
    if not {"moment", "row"}.isdisjoint(sent["start"]):
        return _written_of_others(sent)
    start: dict[str, Any] = {"step": 0, "pin": [], "lines": "auto", "measure": "weights", **sent["start"]}
    defaults = {"step": 0, "lines": "auto", "measure": "weights", **defaults}
    head, pin = start["head"], ",".join("" if place is None else str(place + 1) for place in start["pin"])
    words = {
        "kind": kinds[start["kind"]],
        "layer": f"layer {start['layer'] + 1}",
        "head": f"{head} of heads" if isinstance(head, str) else f"head {head + 1}",
        "step": str(start["step"] + 1),
        "lines": start["lines"],
        "measure": start["measure"],
    }
    changed = {name: word for name, word in words.items() if start[name] != defaults[name]}
    return changed | ({"pin": pin.removesuffix(",")} if pin else {})


def _written_of_others(sent: dict[str, Any]) -> dict[str, str]:
    """Of the moments of a training, or of a figure of one head."""
    start, address = sent["start"], sent["address"]
    own = {"row": address["rows"][start["kind"]][start["row"]]} if "row" in start else {}
    if "moment" in start:
        own = {"moment": str(start["moment"]), "position": address["positions"][start["position"]]}
    words = {
        "kind": address["kinds"][start["kind"]],
        "layer": f"layer {start['layer'] + 1}",
        "head": f"head {start['head'] + 1}",
        **own,
    }
    return {name: word for name, word in words.items() if start[name] != address["defaults"][name]}


def weights(at: AppTest, kind: str) -> np.ndarray:
    """The weights of a kind as they were sent: layer, head, row, column."""
    return array(content(at)["kinds"][kind]["weights"])


def measured(at: AppTest, kind: str = "") -> dict[str, Any]:
    """What a kind, by default that in focus, shows while the chosen measure is; nothing where there is none."""
    start = viewer(at)["start"]
    return content(at)["kinds"][kind or start["kind"]].get("measures", {}).get(start["measure"], {})


def beside(at: AppTest) -> np.ndarray:
    """The numbers of the map beside the weights."""
    return array(measured(at)["second"]["values"])


def head(at: AppTest) -> np.ndarray:
    """The weights of the head in focus, as the large map has them: row, column."""
    start = viewer(at)["start"]
    layers = weights(at, start["kind"])
    heads = layers[content(at)["kinds"][start["kind"]]["numbers"].index(start["layer"])]
    return heads[start["head"]] if isinstance(start["head"], int) else getattr(heads, start["head"])(0)


def reasons(at: AppTest) -> np.ndarray:
    """Why each cell of the head in focus is masked: row, column."""
    start = viewer(at)["start"]
    kind = content(at)["kinds"][start["kind"]]
    seen = array(kind["reasons"])
    return seen if seen.ndim == 2 else seen[kind["numbers"].index(start["layer"]), start["head"]]


def assert_draws_again(at: AppTest, figures: list[dict[str, Any]]) -> None:
    """The figures are those of the page and of its viewer: its charts, the large map, and all heads of every kind."""
    charts, sent = on_page(at), content(at)["kinds"]
    assert figures[: len(charts)] == charts
    large, *small = figures[len(charts) :]
    drawn, seen = numbers(large["data"][0]["z"]), head(at)
    assert drawn.shape == seen.shape and np.isfinite(drawn[: viewer(at)["start"]["step"] + 1]).any(axis=1).all()
    np.testing.assert_allclose(drawn[np.isfinite(drawn)], seen[np.isfinite(drawn)], atol=1e-6)
    assert len(small) == len(sent)
    for figure, of_kind in zip(small, sent.values(), strict=True):
        assert figure["layout"]["title"]["text"] == of_kind["mosaic"]["layout"]["title"]["text"]
        np.testing.assert_array_equal(numbers(figure["data"][0]["z"]), numbers(of_kind["mosaic"]["data"][0]["z"]))


def everything(at: AppTest) -> list[dict[str, Any]]:
    """All that the browser may fetch of the run: its content, and of a run that comes in parts every head."""
    whole = content(at)
    parts = [
        part(at, kind, layer, head)
        for kind, of_kind in whole["kinds"].items()
        if "weights" not in of_kind
        for layer in of_kind["numbers"]
        for head in (*range(of_kind["heads"]), *COMBINED)
    ]
    return [whole, *parts]


def text(at: AppTest) -> str:
    """The text in the viewer's box."""
    return _sent(at, TEXT_KEY)["text"]


def enter(at: AppTest, words: str) -> AppTest:
    """The page after somebody has typed a text and pressed Enter."""
    return _tell(at, TEXT_KEY, {"text": words})


def follow(at: AppTest, words: str) -> AppTest:
    """The page while somebody types: what stands in the box, without Enter."""
    return _tell(at, TEXT_KEY, {"text": words, "isEntered": False})


def press(at: AppTest, **change: Any) -> AppTest:
    """The page after something in the picture was pressed: kind, layer, head, step, pin, lines, measure; numbers from 0."""
    sent = viewer(at)
    return _tell(at, KEY, {**sent["start"], "run": sent["run"], **change})


def way(at: AppTest, name: str) -> AppTest:
    """The page after a button beside the sentence was pressed."""
    told = _number(at)
    return press(at, way={"name": name, "n": told})


def _tell(at: AppTest, key: str, told: Mapping[str, Any]) -> AppTest:
    # Here, since what was sent is read where there is no torch, too.
    from tests import inside

    return inside.tell(at, _node(at, key).proto.id, json.dumps({"at": {**told, "n": _number(at)}}))


def _number(at: AppTest) -> int:
    """A press that is newer than all that was heard."""
    heard = (at.session_state[key] for key in ("viewer_heard", "typed_heard", "viewer_way") if key in at.session_state)
    return max(heard, default=0) + 1


def _sent(at: AppTest, key: str) -> dict[str, Any]:
    return json.loads(_node(at, key).proto.json)


def _has(at: AppTest, key: str) -> bool:
    return any(_key(node) == key for node in at.get("bidi_component"))


def _node(at: AppTest, key: str) -> Any:
    return next(node for node in at.get("bidi_component") if _key(node) == key)


def _key(node: Any) -> str:
    return node.proto.id.split("-", 2)[-1]
