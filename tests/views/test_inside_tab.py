"""The tab Inside: its figures are those of `tv.inspect_head`, one pass makes them, and what stands in the way is said."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import transformer_viz as tv
from tests.views.drawn import markups, said, text_of
from tests.views.widgets import link_of
from transformer_viz.addresses import HeadAddress
from transformer_viz.inside_head.numbers import shown_keys
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.store import to_bytes
from transformer_viz.views.cache import runs
from transformer_viz.views.components import markup
from transformer_viz.views.components.inside import Looks, picture
from transformer_viz.views.components.inside import show as show_inside
from transformer_viz.views.components.opened import Opened
from transformer_viz.views.state import focus

HERE = {"text": "hello", "explore_tab": "Inside"}


def shown(at: AppTest) -> Element:
    """What was drawn."""
    (drawn,) = markups(at, "inside")
    return drawn


def explained(drawn: Element) -> str:
    """The address of the number that is explained, where it has a place of its own."""
    return next(element.attrib["id"] for element in drawn.iter("button") if element.get("class", "").endswith(" now"))


def read(drawn: Element) -> dict[str, Any]:
    """Every number by its address, as one reads it: a number, or all of a vector."""
    found = {}
    for button in drawn.iter("button"):
        if button.get("id") and not button.get("class", "").startswith("closed"):
            vector = button.get("data-values")
            found[button.attrib["id"]] = number(button.text or "") if vector is None else [*map(number, vector.split())]
    return found


def cells(drawn: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for station in (*drawn["enters"], *drawn["leaves"]):
        yield from (cell for _, cell in station["lines"])
    for station in drawn["flow"]:
        yield from (cell for column in station["columns"] for cell in column["cells"] if cell and "masked" not in cell)


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def figures(drawn: dict[str, Any]) -> dict[str, Any]:
    """Every number of the picture by its address: a number, or all of a vector."""
    return {
        cell["address"]: number(cell["text"]) if "text" in cell else [*map(number, cell["values"])] for cell in cells(drawn)
    }


def expected(inside: Inside) -> dict[str, Any]:
    """The same, computed here."""
    assert inside.scores is not None
    scores = np.where(inside.masked, -np.inf, np.asarray(inside.scores, float))
    exps = np.exp(scores - scores.max())
    found: dict[str, Any] = {"largest": scores.max(), "sum": exps.sum(), "query": inside.query, "output": inside.output}
    for name in ("entered", "residual_before", "residual_after", "added", "projected"):
        found[name] = getattr(inside, name)
    for key in range(len(inside.keys)):
        found |= {f"key.{key + 1}": inside.keys[key], f"value.{key + 1}": inside.values[key]}
        found |= {f"dot.{key + 1}": inside.keys[key] @ inside.query, f"exp.{key + 1}": exps[key]}
        found |= {f"score.{key + 1}": inside.scores[key], f"weight.{key + 1}": inside.weights[key]}
        found |= {f"part.{key + 1}": inside.weights[key] * inside.values[key]}
    return found


@pytest.mark.parametrize(("kind", "layer", "head", "step"), [("cross", 2, 3, 4), ("decoder", 1, 1, 3), ("encoder", 1, 2, 1)])
def test_every_number_is_that_of_the_run(start, model, kind, layer, head, step):
    at = start(**HERE, kind=kind, layer=str(layer), head=str(head), step=str(step))
    inside = tv.inspect_head(
        model, tv.decode(model, "hello"), HeadAddress(kind, layer - 1, head - 1), 0 if kind == "encoder" else step - 1
    )
    found, wanted = read(shown(at)), expected(inside)
    assert found.keys() == wanted.keys()
    for address, value in wanted.items():
        np.testing.assert_allclose(found[address], value, atol=5.1e-4, err_msg=address)
    masked = [button.text for button in shown(at).iter("button") if button.get("class", "").startswith("closed")]
    assert masked == ["in the future"] * int(inside.masked.sum())


def test_the_pinned_cell_is_explained_and_what_a_link_names(start, folder):
    at = start(**HERE, pin="3,2", step="5")
    assert text_of(shown(at).find(".//*[@class='row-title']/code")) == "3·5→0"
    assert explained(shown(at)) == "weight.2"
    assert "explained" not in link_of(at)
    at = start(**HERE, explained="score.4")
    assert explained(shown(at)) == "score.4"
    assert link_of(at)["explained"] == "score.4"
    # No such key: the weight of the one that has most.
    at = start(**HERE, explained="weight.99", step="2")
    weights = read(shown(at))
    most = max((address for address in weights if address.startswith("weight.")), key=lambda address: weights[address])
    assert explained(shown(at)) == most
    assert "explained" not in link_of(at)


def test_one_pass_a_row_and_none_while_the_tab_is_closed(start, own_folder, monkeypatch):
    passes: list[tuple[Any, ...]] = []
    looked = runs.inspect_head

    def counted(*args: Any) -> Inside:
        passes.append(args[2:])
        return looked(*args)

    monkeypatch.setattr(runs, "inspect_head", counted)
    at = start(text="hello", step="3", explore_tab="Masks")
    assert not passes
    at.session_state["explore_tab"] = "Inside"
    at.run()
    assert len(passes) == 1
    at.run()
    start(**HERE, step="3", explained="sum")
    assert len(passes) == 1
    start(**HERE, step="4")
    assert len(passes) == 2


def test_what_has_no_inside_is_said(start, folder):
    at = start(**HERE, head="mean")
    assert not markups(at, "inside") and "have no query" in said(at)
    at = start(**HERE, hide_answer="true")
    assert not markups(at, "inside") and "would give the answer away" in said(at)


def opened(trace: tv.Trace) -> dict[str, Opened]:
    return {"run.npz": Opened(tv.load_trace(to_bytes(trace)), "run.npz", "f-run")}


def test_a_file_shows_what_it_holds(start, model):
    trace = tv.decode(model, "hello")
    here = {"checkpoint": "trace file", "explore_tab": "Inside"}
    place = {"layer": "2", "head": "3", "step": "4"}
    at = start(None, opened(trace), **here, **place)
    assert not markups(at, "inside")
    assert "--inside cross.2.3:4" in at.code[-1].value
    inside = tv.inspect_head(model, trace, "cross.2.3", 3)
    held = opened(trace.with_inside(inside))
    assert read(shown(start(None, held, **here, **place))).keys() == expected(inside).keys()
    at = start(None, held, **here, kind="decoder", layer="1", head="1", step="2")
    assert not markups(at, "inside")
    at.button(key="go-inside-cross.2.3:4").click().run()
    assert text_of(shown(at).find(".//*[@class='row-title']/code")) == "4·0→x"


def many_keys(n: int, **others: Any) -> Inside:
    """A row of a head with d_k 16, whose every number is drawn."""
    rng = np.random.default_rng(8)
    query, keys, values = rng.normal(size=16), rng.normal(size=(n, 16)), rng.normal(size=(n, 16))
    scores = keys @ query / 4
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    tokens = tuple(f"t{key}" for key in range(n))
    given: dict[str, Any] = {"query": query, "keys": keys, "values": values, "scores": scores, "weights": weights}
    given |= {"kind": "decoder", "layer": 0, "head": 0, "row": n - 1, "row_token": tokens[-1], "key_tokens": tokens}
    given |= {"output": weights @ values, "scale": 0.25, "reasons": np.zeros(n, np.uint8)}
    return Inside(**{**given, **others})


def test_of_200_keys_the_largest_and_the_rest_as_one():
    inside = many_keys(200)
    looks = Looks("light", False)
    pinned = int(inside.weights.argmin())
    drawn = picture(inside, looks, pinned)
    names = [name["text"] for name in drawn["names"]]
    assert len(names) == 1 + 12 + 1 + 1
    assert names[-2] == "188 more"
    order = [int(name.split("·")[0]) - 1 for name in names[1:-2]]
    assert order == [*np.argsort(-inside.weights)[:11], pinned]
    output = next(station for station in drawn["flow"] if station["id"] == "output")["columns"][0]["cells"]
    *parts, together = [[*map(number, cell["values"])] for cell in output if cell]
    assert len(parts) == 13
    others = np.delete(np.arange(200), order)
    np.testing.assert_allclose(parts[-1], inside.weights[others] @ inside.values[others], atol=5.1e-4)
    np.testing.assert_allclose(np.sum(parts, 0), together, atol=14 * 5e-4)
    np.testing.assert_allclose(together, inside.output, atol=5.1e-4)
    weights = next(station for station in drawn["flow"] if station["id"] == "weights")["columns"][-1]["cells"]
    assert sum(number(cell["text"]) for cell in weights if cell) == pytest.approx(1, abs=14 * 5e-4)


def test_what_a_model_does_not_tell_is_said_by_name():
    inside = many_keys(5)
    drawn = picture(replace(inside, scores=None, scale=None), Looks("dark", False))
    assert [station["id"] for station in drawn["flow"]] == ["keys", "weights", "values", "output"]
    assert re.search("Not known of this model: .*the scores.*W_O", drawn["untold"])


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ({}, ["q · k", "÷ √16"]),
        ({"scale": 1.0}, ["q · k"]),
        ({"scale": 1.0, "bias": np.ones(5)}, ["q · k", "+ bias", "= score"]),
        ({"scale": 0.125, "softcap": 50.0}, ["q · k", "× 0.125", "soft-capped"]),
        ({"softcap": 50.0, "bias": np.ones(5)}, ["q · k", "÷ √16", "soft-capped", "+ bias", "= score"]),
        ({"reasons": np.array([0, 1, 0, 2, 0], np.uint8)}, ["q · k", "÷ √16", "mask"]),
    ],
)
def test_scores_come_about_as_in_this_model(how, named):
    inside = many_keys(5, **how)
    drawn = picture(inside, Looks("light", False))
    (scores,) = [station for station in drawn["flow"] if station["id"] == "scores"]
    assert [column["head"] for column in scores["columns"]] == named
    shown = figures(drawn)
    if "bias" in how:
        assert [shown[f"bias.{key}"] for key in range(1, 6)] == [1.0] * 5
    if len(named) > 1:
        assert [shown[f"dot.{key + 1}"] for key in range(5)] == pytest.approx(inside.keys @ inside.query, abs=5.1e-4)


@pytest.mark.parametrize(
    ("norm", "stations"),
    [
        ("pre", ["residual_before", "entered", "query", "projected", "residual"]),
        ("post", ["entered", "query", "projected", "residual", "residual_after"]),
        ("residual-post", ["entered", "query", "projected", "added", "normed", "residual"]),
    ],
)
def test_the_norm_stands_where_this_model_has_it(norm, stations):
    rng = np.random.default_rng(2)
    before, added, after = rng.normal(size=(3, 24))
    streams = {"entered": before, "residual_before": before, "added": added, "residual_after": after, "projected": added}
    inside = many_keys(5, norm=norm, norm_kind="layer", norm_epsilon=1e-5, **streams)
    drawn = picture(inside, Looks("light", False))
    assert [station["id"] for station in (*drawn["enters"], *drawn["leaves"])] == stations
    shown = figures(drawn)
    if norm == "post":
        np.testing.assert_allclose(shown["norm_input"], before + added, atol=5.1e-4)
    if norm == "residual-post":
        normed = (added - added.mean()) / np.sqrt(added.var() + 1e-5)
        np.testing.assert_allclose(shown["normed"], normed, atol=5.1e-4)


@pytest.mark.parametrize(
    ("how", "address"),
    [
        ({"reasons": np.arange(40, dtype=np.uint8) % 3}, "weight.1"),
        ({"scores": None, "scale": None}, "output.3"),
        ({"bias": np.ones(40), "softcap": 50.0}, "rest"),
        ({"norm": "pre", "residual_before": np.ones(24), "entered": np.full(24, np.nan)}, "weight.1"),
        ({"weights": np.full(40, np.nan), "reasons": np.ones(40, np.uint8)}, "weight.2"),
    ],
)
def test_every_row_can_be_drawn(how, address, monkeypatch):
    """Many keys of which some are masked, what a model does not tell, and numbers that are none."""
    inside = many_keys(40, **how)
    sent: dict[str, Any] = {}
    monkeypatch.setattr(markup, "show", lambda *_, **parts: sent.update(parts))
    monkeypatch.setattr(focus, "step", lambda: 0)
    monkeypatch.setattr(focus, "pinned", lambda: ())
    st.session_state.run = "run"
    show_inside(inside, [address], Looks("light", False), None, lambda _: None)
    drawn = fromstring(markup.TEMPLATES.get_template("components/inside.html").render(sent))
    assert drawn.find(".//*[@class='explained']") is not None
    closed = [element.text for element in drawn.iter() if element.get("class", "").startswith("closed")]
    n_masked = sum(int(inside.reasons[key] > 0) for key in shown_keys(inside))
    assert len(closed) == n_masked + (n_masked > 0)
