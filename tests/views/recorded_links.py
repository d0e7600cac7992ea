"""A hundred links as people have shared them, and what each of them opens: control values and the numbers of its charts.

`python -m tests.views.recorded_links` records them anew; for links that are meant to open something else from now on.
"""

import base64
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.inside import go
from tests.views.drawn import pictures
from tests.views.widgets import controls
from transformer_viz.views.state.controls import CONTROLS

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_suffix(".json")
Link = tuple[str | None, dict[str, str]]


def links() -> list[Link]:
    """Page and query of each; None is the first page."""
    explore: list[dict[str, str]] = [
        {},
        {"text": "hello"},
        {"text": "Hello, World!", "kind": "encoder", "layer": "1", "head": "2", "step": "4"},
        {"text": "racecar", "kind": "decoder", "head": "mean", "step": "3"},
        {"text": "aaaaaaaaaaaa", "checkpoint": "reverse-small", "head": "max"},
        {"text": "a<b>&c", "projector": "on"},
        {"text": "two words", "answer": "hidden", "step": "2"},
        {"text": "hello", "head": "9"},
        {"text": "hello", "layer": "0", "kind": "sideways", "step": "99"},
        {"text": "HELLO", "checkpoint": "nowhere"},
        {"text": "x" * 40},
        {"text": "siebenhundertdreiundzwanzig", "checkpoint": "numbers", "step": "2"},
        {"text": "neunzehn", "checkpoint": "numbers", "kind": "decoder", "layer": "2"},
        {"text": "3. März 1987", "checkpoint": "dates", "head": "mean"},
        {"text": "银行", "checkpoint": "pinyin"},
    ]
    tabs = ["What if", "Heads", "By length", "Masks in force", "All numbers", "Export", "This run"]
    explore += [{"text": "hello", "tables": tab} for tab in tabs]
    explore += [
        {"text": "hello", "tables": "What if", "change": change, **more}
        for change, more in (
            ("token", {"at": "2", "prefix": "o,x"}),
            ("begin", {"begin": "xy"}),
            ("ban", {"ban": "l"}),
            ("target", {"target": "hallo"}),
        )
    ]
    explore += [
        {"text": text, "kind": kind, "layer": layer, "head": head}
        for text, (kind, layer, head) in zip(
            ("stressed", "live on", "Was it a rat?", "0123456789"),
            itertools.product(("encoder", "decoder", "cross"), ("1", "2"), ("1", "4")),
            strict=False,
        )
    ]
    masks: list[dict[str, str]] = [{}, {"sources": "hello\nab"}, {"sources": "hello\nab\nabcdef", "sentence": "2"}]
    mask_tabs = ["Masks", "Scores to weights", "Change and run again", "Mistakes", "Certificate", "Loss"]
    masks += [{"sources": "hello\nab", "tab": tab} for tab in mask_tabs]
    masks += [
        {"sources": "hello\nab", "tab": "Change and run again", "mask": mask, "sentence": "1"}
        for mask in ("cross:1-2", "decoder:off", "cross.2.4:zero", "cross.1.1:3=5", "nonsense")
    ]
    masks += [
        {"sources": "hello\nab", "tab": "Scores to weights", "kind": kind, "row": "2", "head": "3"}
        for kind in ("encoder", "decoder", "cross")
    ]
    masks += [{"sources": "hello\nab", "mistake": name} for name in ("no-causal", "wrong-axis", "source-mask-forgotten")]
    search: list[dict[str, str]] = [
        {},
        {"text": "hello", "beam": "3"},
        {"text": "hello", "beam": "2", "alpha": "1", "stop": "first"},
    ]
    search += [{"text": "abc", "checkpoint": "reverse-small", "beam": "4", "node": node} for node in ("1.1", "2.1", "9.9")]
    search += [{"text": "hello", "beam": "3", "tables": tab} for tab in ("Heads", "Export", "This run")]
    compare: list[dict[str, str]] = [
        {},
        {"text": "hello", "b_text": "hallo"},
        {"text": "hello", "checkpoint": "reverse", "b_text": "hello", "b_checkpoint": "reverse-small"},
        {"text": "hello", "b_text": "help", "kind": "encoder", "layer": "1", "head": "1", "b_layer": "2", "b_head": "3"},
        {"text": "hello", "b_text": "hello", "a_strategy": "greedy", "b_strategy": "beam", "b_beam": "3"},
        {"text": "hello", "b_text": "hello", "b_strategy": "sample", "b_temperature": "1.5", "b_seed": "7"},
        {
            "text": "abcdefghij",
            "checkpoint": "reverse-small",
            "b_checkpoint": "reverse-small",
            "a_snapshot": "21",
            "b_snapshot": "588",
        },
        {"text": "hello", "b_text": "hallo", "scale": "widest"},
    ]
    replay: list[dict[str, str]] = [
        {},
        {"text": "stressed", "checkpoint": "reverse-small"},
        {"text": "stressed", "checkpoint": "reverse-small", "moment": "87", "position": "3"},
        {"text": "stressed", "checkpoint": "reverse-small", "head": "2", "kind": "decoder"},
    ]
    train: list[dict[str, str]] = [
        {},
        {"task": "sort", "variant": "post-norm"},
        {"task": "copy", "set": "steps:300,batch_size:32"},
        {"task": "numbers", "name": "mine"},
    ]
    opened: list[dict[str, str]] = [{}, {"opened": "run.npz"}]
    pages = ((None, explore), ("masks", masks), ("search", search), ("compare", compare), ("replay", replay), ("train", train))
    found: list[Link] = [(page, query) for page, queries in pages for query in queries] + [("open", query) for query in opened]
    texts = ("level", "Transformer", "a b c", "noon!", "QWERTY", "t", "1+1=2", "edit", "mirror image", "Zz")
    rest = itertools.product((("cross", "2"), ("decoder", "1"), ("encoder", "2")), texts)
    for (kind, layer), text in rest:
        if len(found) >= 100:
            break
        found.append((None, {"text": text, "kind": kind, "layer": layer, "head": str(1 + len(text) % 4), "step": "2"}))
    return found[:100]


def opens(page: str | None, query: dict[str, str]) -> dict[str, Any]:
    """What a link shows: values by their names in a link, and sums over each chart's numbers."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for key, value in query.items():
        at.query_params[key] = value
    go(at, page).run()
    assert not at.exception, at.exception
    values = {CONTROLS[widget.key]: plain(at, widget) for widget in controls(at) if widget.key in CONTROLS}
    if "chosen_node" in at.session_state:  # chosen in a figure and in a table of our own
        values["node"] = at.session_state["chosen_node"]
    return {"values": values, "numbers": [sums for figure in pictures(at) for sums in numbers(figure)]}


def plain(at: AppTest, widget: Any) -> Any:
    """A control's value as JSON has it."""
    value = at.session_state[widget.key] if widget.key in at.session_state else getattr(widget.node, "value", None)
    return json.loads(json.dumps(value, default=str))


def numbers(figure: dict[str, Any]) -> list[list[float]]:
    """Of each map: its shape, its sum, and its sum weighted by row and by column, which a shift or a swap changes."""
    found = []
    for trace in figure.get("data", []):
        z = array(trace.get("z")) if trace.get("type") == "heatmap" else None
        if z is not None and z.ndim == 2:
            z = np.nan_to_num(z.astype(float))
            rows, columns = np.arange(1, 1 + z.shape[0])[:, None], np.arange(1, 1 + z.shape[1])[None]
            found.append([*z.shape, *(round(float(part.sum()), 3) for part in (z, z * rows, z * columns))])
    return found


def array(given: Any) -> np.ndarray | None:
    """A list, or Plotly's typed base64."""
    if isinstance(given, dict):
        flat = np.frombuffer(base64.b64decode(given["bdata"]), np.dtype(given["dtype"]))
        return flat.reshape([int(n) for n in str(given.get("shape", len(flat))).split(",")])
    return None if given is None else np.array(given, dtype=float)


def main() -> int:
    """Writes the file."""
    recorded: list[dict[str, Any]] = []
    for page, query in links():
        st.cache_data.clear()
        recorded.append({"page": page, "query": query, **opens(page, query)})
        print(page or "explore", query, len(recorded[-1]["values"]), len(recorded[-1]["numbers"]), flush=True)
    FILE.write_text(
        json.dumps(recorded, ensure_ascii=False, indent=None).replace('{"page"', '\n{"page"') + "\n", encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
