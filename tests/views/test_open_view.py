"""Open through AppTest: files of every kind are drawn without a model, what is no trace is said and does no harm."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.attentions import with_parts
from tests.figures.conftest import build
from tests.views.drawn import charts, pictures, table_of
from transformer_viz import Trace, decode, load_checkpoint
from transformer_viz.trace import limits
from transformer_viz.trace.store import to_bytes
from transformer_viz.views.explore.tables import OF_A_FILE

Start = Callable[..., AppTest]
HOSTILE = ("<img src=x onerror=alert(1)>", "</script>", "<s>", "**b**", "$x$")


def said(at: AppTest) -> str:
    kinds = [*at.error, *at.info, *at.warning, *at.markdown, *at.caption]
    return " ".join(str(element.value) for element in kinds).replace("\\", "")


def drop(at: AppTest, *files: tuple[str, bytes]) -> AppTest:
    at.file_uploader[0].set_value([(name, data, "application/octet-stream") for name, data in files])
    return at.run()


def every_tab(at: AppTest) -> None:
    for tab in OF_A_FILE:
        at.session_state["explore_tab"] = tab
        at.run()
        assert not at.exception, tab


def by_arrays(**fields: Any) -> Trace:
    tokens = [*HOSTILE]
    weights = np.full((2, 3, 5, 5), 0.2)
    return Trace.from_arrays(cross=weights, source_tokens=tokens, target_tokens=tokens, output_tokens=tokens, **fields)


def test_before_a_file_is_dropped_the_page_says_what_to_do(start: Start) -> None:
    at = start(checkpoint="trace file")
    assert not at.exception
    for words in ("A trace is the complete record", "From this app", "From the command line", "From your own model"):
        assert words in said(at)
    assert "python -m transformer_viz trace hello -o hello.npz" in [code.value for code in at.code]
    assert not pictures(at)


def test_the_example_is_a_run_of_the_checkpoint(start: Start, folder: Path) -> None:
    at = start(checkpoint="trace file")
    at.button(key="open-example").click().run()
    assert not at.exception
    want = decode(load_checkpoint(str(folder / "reverse"), "cpu"), "hello")
    (found,) = at.session_state["opened"].values()
    assert found.trace.output_tokens == want.output_tokens
    assert len(pictures(at)) == 4, "the focus map and three mosaics"
    every_tab(at)


def test_where_the_example_cannot_be_made_it_says_why(start: Start, own_folder: Path) -> None:
    at = start(checkpoint="trace file")
    (own_folder / "reverse" / "config.json").write_text("{")
    at.button(key="open-example").click().run()
    assert not at.exception
    assert len(at.error) == 1


RUNS: dict[str, Callable[[], Trace]] = {
    "all three kinds, padding": build,
    "encoder alone": lambda: Trace.from_arrays(encoder=np.full((2, 3, 3), 1 / 3), source_tokens=["a", "a", "<b>"]),
    "decoder alone": lambda: Trace.from_arrays(decoder=np.eye(5), target_tokens=[*HOSTILE], masks={"decoder": "causal"}),
    "no probabilities": by_arrays,
    "probabilities without candidates": lambda: by_arrays(probabilities=[0.5] * 5, made_by={"a": {"b": [1, None]}}),
    "scores and edits": lambda: build(
        attentions=with_parts(build(), "cross", scores=np.ones((3, 5, 7, 11), np.float32)),
        edits=("cross.1.1:zero",),
        finished="length",
    ),
    "masks by head": lambda: build(
        attentions=with_parts(build(), "cross", reasons=np.zeros((3, 5, 7, 11), np.uint8)),
    ),
    "a mistake without numbers": lambda: build(mistake="no mask", cross=np.full((3, 5, 7, 11), np.nan, dtype=np.float32)),
    "odd notes": lambda: build(made_by={"seconds": 10**400, "checkpoint": ["x"], "<i>": "y" * 5000}),
}


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_run_is_drawn_in_every_tab(start: Start, name: str) -> None:
    trace = RUNS[name]()
    at = drop(start(checkpoint="trace file"), ("run.npz", to_bytes(trace)))
    assert not at.exception
    assert not at.error
    assert len(pictures(at)) == 1 + len(trace.kinds)
    assert pictures(at)[0]["layout"]["meta"]["steps"] == len(trace.rows)
    every_tab(at)


def test_a_beam_search_has_its_tree_and_each_hypothesis_its_own_attention(start: Start, folder: Path) -> None:
    trace = decode(load_checkpoint(str(folder / "reverse"), "cpu"), "abc", strategy="beam", beam_size=3)
    assert trace.search is not None
    at = drop(start(checkpoint="trace file", export_format="code"), ("beam.npz", to_bytes(trace)))
    assert not at.exception
    numbers = sorted(n for drawn in pictures(at)[0]["data"] for n in drawn.get("customdata", []))
    assert numbers == list(range(len(trace.search.nodes)))
    assert list(table_of(at, "rank")["text"]) == [trace.search.nodes[n].text or "(empty)" for n in trace.search.best]
    node = trace.search.best[2]
    at.session_state["node"] = str(node + 1)
    at.run()
    assert list(at.session_state["hypotheses"]["selection"]["rows"]) == [2]
    assert at.query_params["node"] == str(node + 1)
    assert pictures(at)[1]["layout"]["meta"]["steps"] == len(trace.search.path(node))
    every_tab(at)
    assert f"trace.at_node({node})" in at.code[0].value


def changed(data: bytes, **meta: Any) -> bytes:
    """The file with other values in its description."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, json.dumps({**json.loads(content), **meta}) if name == "meta.json" else content)
    return buffer.getvalue()


def bomb() -> bytes:
    """200 kB that unpack to more than is allowed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("meta.json", "{}")
        with archive.open("attentions/cross/weights.npy", "w") as member:
            for _ in range(limits.MOST_UNPACKED // 2**20 + 1):
                member.write(bytes(2**20))
    return buffer.getvalue()


def arrays(**given: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **given)
    return buffer.getvalue()


GOOD = to_bytes(build())
BAD: dict[str, tuple[str, bytes, str]] = {
    "wrong suffix": ("notes.txt", b"dear diary", "notes.txt is damaged or not a trace file"),
    "empty": ("empty.npz", b"", "empty.npz is damaged"),
    "truncated": ("cut.npz", GOOD[: len(GOOD) // 2], "cut.npz is damaged"),
    "future": ("new.npz", changed(GOOD, format=4), "its format is 4, and this version reads format 1; open it with"),
    "foreign": ("mine.npz", arrays(weights=np.ones(3)), "it holds 'weights.npy', which does not belong there"),
    "single array": ("mine.npy", b"\x93NUMPY\x01\x00" + bytes(80), "mine.npy is damaged or not a trace file"),
    "bomb": ("bomb.npz", bomb(), "it unpacks to more than 128 MB"),
    "lying shape": ("lie.npz", changed(GOOD, source_tokens=["a"]), "lie.npz is not a trace"),
    "markup": ("**<img src=x onerror=alert(1)>**.npz", b"no", "**<img src=x onerror=alert(1)>**.npz is damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_trace_is_said_in_words(start: Start, name: str) -> None:
    file, data, words = BAD[name]
    at = drop(start(checkpoint="trace file"), (file, data))
    assert not at.exception
    assert words in said(at)
    assert all(sign not in at.error[0].value.replace(f"\\{sign}", "") for sign in "<*["), "nothing in it acts as markup"
    assert "Trace.from_arrays makes one" in said(at)
    assert "Open a trace file" in said(at), "the page is still there"
    # The next file is read as if nothing had been.
    at = drop(at, ("good.npz", GOOD))
    assert not at.error
    assert len(pictures(at)) == 4


class Evil:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path(self.path),)


def test_a_pickle_inside_is_never_opened(start: Start, tmp_path: Path) -> None:
    trap = tmp_path / "opened"
    evil = arrays(cross_attentions=np.array([Evil(str(trap))], dtype=object))
    for data in (evil, pickle.dumps(Evil(str(trap)))):
        at = drop(start(checkpoint="trace file"), ("evil.npz", data))
        assert not at.exception
        assert len(at.error) == 1
    assert not trap.exists()
    np.load(io.BytesIO(evil), allow_pickle=True)["cross_attentions"]
    assert trap.exists(), "the trap works"


def test_markup_in_a_file_is_text(start: Start) -> None:
    trace = by_arrays(probabilities=[0.5] * 5, made_by={"checkpoint": "<b>me</b>", "<i>k</i>": "<u>v</u>"})
    at = drop(start(checkpoint="trace file"), ("<b>x.npz", to_bytes(trace)))
    assert not at.exception
    assert all("<" not in str(element.value).replace("\\<", "") for element in [*at.markdown, *at.caption])
    assert "<b>me</b>" in list(at.dataframe[0].value["as the file says"])
    assert at.selectbox(key="open_name").value == "<b>x"
    for chart in pictures(at):
        ticks = chart["layout"].get("yaxis", {}).get("ticktext", [])
        assert not any("<" in tick for tick in ticks)


def test_the_link_has_the_place_and_not_the_file(start: Start) -> None:
    data = to_bytes(build())
    place = {"kind": "decoder", "layer": "3", "head": "2", "step": "4"}
    query = {**place, "explore_tab": "Heads", "tint": "score"}
    at = start(checkpoint="trace file", **query)
    assert "A link cannot hold a file" in said(at)
    assert at.query_params["step"] == "4", "a link that waits for its file stays"
    at = drop(at, ("mine.npz", data))
    state = at.session_state
    assert (state.kind, state.layer, state.head, state.step) == ("decoder", 2, 1, "4")
    assert (state.explore_tab, state.tint) == ("Heads", "score")
    assert set(query) - {"explore_tab", "tint"} <= set(at.query_params)
    assert "cannot hold a file" not in said(at)


def test_what_a_link_says_and_the_file_does_not_have_is_said(start: Start) -> None:
    at = drop(start(checkpoint="trace file", layer="7", explore_tab="What if", step="99"), ("a.npz", GOOD))
    for words in ("layer=7", "explore_tab=What if", "step=99"):
        assert words in said(at)


def test_two_runs_of_the_same_words_are_told_apart(start: Start) -> None:
    """The browser keeps a drawn figure as long as the run's name is the same."""
    weights = np.eye(5, dtype=np.float32)[None, None].repeat(2, 1)
    first, second = by_arrays(), replace(by_arrays(), attentions=with_parts(by_arrays(), "cross", weights=weights, layers=(0,)))
    at = drop(start(checkpoint="trace file"), ("a.npz", to_bytes(first)))
    before = charts(at)[0].run
    at = drop(at, ("b.npz", to_bytes(second)))
    assert charts(at)[0].run != before
