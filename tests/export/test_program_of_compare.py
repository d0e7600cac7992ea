"""The lines under Compare: run, they give the difference that the page shows."""

from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

import transformer_viz as tv
from transformer_viz.checkpoints import Checkpoint, load_snapshot
from transformer_viz.trace.trace import Trace
from transformer_viz.views.snippets.compare import Side, lines

SMALL: dict[str, Any] = {"checkpoint": "reverse-small", "device": "cpu"}
REVERSE: dict[str, Any] = {"checkpoint": "reverse", "device": "cpu"}


def loaded(name: str) -> Checkpoint:
    return tv.load_checkpoint(name, device="cpu")


def ran(program: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(go.Figure, "show", lambda self: None)
    names: dict[str, Any] = {}
    exec(compile(program, "compare", "exec"), names)
    return names


def check(names: dict[str, Any], a: Trace, b: Trace, *place: Any) -> None:
    expected = tv.compare(a, b).difference(*place)
    np.testing.assert_array_equal(names["difference"], expected)
    drawn = [trace.z for trace in names["figure"].data if getattr(trace, "coloraxis", None) == "coloraxis2"]
    np.testing.assert_array_equal(drawn[0], np.where(tv.compare(a, b).one_head(*place).masked == 3, np.nan, expected))


def test_two_snapshots_one_of_which_reads_what_the_other_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    small = loaded("reverse-small")
    program = lines(
        Side(text="reversethis", **SMALL),
        Side(text="reversethis", **SMALL, snapshot=141, reads_the_other=True),
        "cross",
        0,
        2,
        looks={"theme": "dark", "columns": 3},
    )
    assert program.count("load_model") == 1
    assert "columns" not in program
    a = tv.decode(small, "reversethis")
    b = tv.decode(load_snapshot(small, 141), "reversethis", target=tuple(a.output_tokens[:-1]))
    check(ran(program, monkeypatch), a, b, "cross", 0, 2)


def test_the_side_that_is_read_is_run_first(monkeypatch: pytest.MonkeyPatch) -> None:
    program = lines(Side(text="hello", **REVERSE, reads_the_other=True), Side(text="halle", **SMALL), "decoder", 0, 1)
    assert "load_snapshot" not in program
    b = tv.decode(loaded("reverse-small"), "halle")
    a = tv.decode(loaded("reverse"), "hello", target=tuple(b.output_tokens[:-1]))
    check(ran(program, monkeypatch), a, b, "decoder", 0, 1)


def test_a_file_against_a_beam_with_another_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = loaded("reverse-small")
    name = 'it\'s <b> "odd".npz'
    a = tv.decode(small, "thisqaipa")
    a.save(tmp_path / name)
    b_run = Side(text="thisqaipa", **SMALL, decode={"strategy": "beam", "beam_size": 3})
    program = lines(Side(file=name), b_run, "cross", 0, "mean", (None, 3))
    b = tv.decode(small, "thisqaipa", strategy="beam", beam_size=3)
    check(ran(program, monkeypatch), a, b, "cross", 0, "mean", None, 3)


def test_a_sampled_run_and_a_text_full_of_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "'\"\\ {x}"
    sampled: dict[str, Any] = {"strategy": "sample", "temperature": 2.0, "seed": 3}
    program = lines(Side(text=text, **REVERSE), Side(text=text, **REVERSE, decode=sampled), "cross", 1, 0)
    model = loaded("reverse")
    check(ran(program, monkeypatch), tv.decode(model, text), tv.decode(model, text, **sampled), "cross", 1, 0)
