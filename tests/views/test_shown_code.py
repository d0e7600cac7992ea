"""“Show the code”: below each view, lines that make again, to the last number, what is on the screen."""

import contextlib
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from tests.trace.conftest import is_same
from tests.views.drawn import picture_of, pictures, table_of
from tests.views.rooms import OPENINGS, files
from transformer_viz import checkpoints, load_trace
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.trace.store import to_bytes
from transformer_viz.views.components import screen
from transformer_viz.views.explore import tables
from transformer_viz.views.masks import page as masks_page

Start = Callable[..., AppTest]
HOSTILE = "a'b\\\"<i>$x$"


@pytest.fixture
def run_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Runs lines in a namespace of their own; `figures` are those that it showed, `said` is what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(lines: str) -> dict[str, Any]:
        figures: list[dict[str, Any]] = []
        names: dict[str, Any] = {}
        monkeypatch.setattr(go.Figure, "show", lambda figure, **_: figures.append(json.loads(figure.to_json())))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(lines, "shown", "exec"), names)
        return {**names, "figures": figures, "said": said.getvalue()}

    return run


@pytest.fixture
def start(start: Start) -> Start:
    """Every fold open."""
    return partial(start, **dict.fromkeys(("code", "code_of_tab", "code_of_job", "code_of_moments"), "true"))


def programs(at: AppTest) -> list[str]:
    """The lines of Python behind every fold of that name that is open."""
    return [code.value for code in _codes(at) if code.language == "python"]


def commands(at: AppTest) -> list[str]:
    """The commands of a terminal behind them."""
    return [code.value for code in _codes(at) if code.language == "bash"]


def _codes(at: AppTest) -> list[Any]:
    assert not at.exception
    return [fold.code[0] for fold in at.expander if fold.label == "Show the code" and fold.code]


def lines_of_pictures(at: AppTest) -> str:
    """The lines that the tab Export of Explore has of the pictures above it."""
    assert not at.exception
    (code,) = at.code
    return code.value


CODE = {"explore_tab": "Export", "export_format": "code"}


def on_page(at: AppTest, first: int = 0, last: int | None = None) -> list[dict[str, Any]]:
    return [picture_of(chart) for chart in pictures(at)][first:last]


def shown(again: dict[str, Any]) -> list[dict[str, Any]]:
    return [picture_of(chart) for chart in again["figures"]]


def said(at: AppTest) -> str:
    return " ".join(str(element.value) for element in [*at.markdown, *at.text, *at.success, *at.error]).replace("\\", "")


EXPLORE = {"text": HOSTILE, "kind": "decoder", "layer": "2", "head": "max", "step": "4"}


def test_explore(start: Start, everything: Path, run_code: Any) -> None:
    by_value, cause = {**EXPLORE, "measure": "value"}, {**EXPLORE, "measure": "cause", "cause_mode": "deleted"}
    for query in (EXPLORE, {"text": "hello", "checkpoint": "reverse-small", "device": "cpu"}, by_value, cause):
        at = start(**query, **CODE)
        assert len(pictures(at)) == 4
        assert shown(run_code(lines_of_pictures(at))) == on_page(at)


@pytest.mark.parametrize(
    ("tab", "query"),
    [
        ("What if", {"what_if_prefix": '["x", "\'"]'}),
        ("What if", {"what_if_how": "a beginning of your own", "what_if_begin": "x'\""}),
        ("What if", {"what_if_how": "banned tokens", "what_if_ban": "a"}),
        ("What if", {"what_if_how": "a target of your own", "what_if_target": "x\\y"}),
        ("Heads", {"tint": "entropy_share"}),
        ("Masks", {}),
    ],
)
def test_pictures_in_the_tabs_of_explore(
    start: Start, everything: Path, run_code: Any, tab: str, query: dict[str, str]
) -> None:
    at = start(**EXPLORE, explore_tab=tab, **query)
    assert len(pictures(at)) > 4
    assert shown(run_code(programs(at)[0])) == on_page(at, 4)


def test_by_length(start: Start, everything: Path, run_code: Any) -> None:
    at = start(text="ab", explore_tab="Heads", heads_part="By length", by_length_samples="20", by_length="true")
    again = run_code(programs(at)[0])
    assert shown(again) == on_page(at, 4)
    assert again["table"].equals(at.dataframe[0].value)


@pytest.mark.parametrize("more", [{}, {"trial_every": "true"}, {"trial_texts": "ab\n'x\n"}])
def test_knocked_out(start: Start, everything: Path, run_code: Any, more: dict[str, str]) -> None:
    more = {"trial_samples": "20", "trial_how": "mean", **more}
    at = start(text="hello", explore_tab="Heads", heads_part="On trial", question="Is it needed?", knock_out="true", **more)
    again = run_code(programs(at)[0])
    assert again["texts"] == ["ab", "'x"] if "trial_texts" in more else len(again["texts"]) == 20
    found = again["knock_out"]
    if "trial_every" not in more:
        assert f"{percent_words(found.heads[0].exact.value)} without this one" in said(at)
        return
    np.testing.assert_array_equal(table_of(at, "log p lost")["answers that stay"], [each.stays.value for each in found.heads])


@pytest.mark.parametrize(
    ("question", "toggle"), [("Is its order faithful?", "curves"), ("Could it look elsewhere?", "counter_proof")]
)
def test_pictures_on_trial(start: Start, everything: Path, run_code: Any, question: str, toggle: str) -> None:
    more = {"question": question, toggle: "true", "trial_together": "the heads of its layer"}
    at = start(text="hello", explore_tab="Heads", heads_part="On trial", kind="decoder", **more)
    assert shown(run_code(programs(at)[0])) == on_page(at, 4)


def test_the_verdict(start: Start, everything: Path, run_code: Any) -> None:
    at = start(text="hello", explore_tab="Heads", heads_part="On trial", verdict="true", kind="decoder")
    tops = run_code(programs(at)[0])["table"]["top"].tolist()
    np.testing.assert_allclose(table_of(at, "map")["at the cause, word"], tops)


def from_zero(table: pd.DataFrame) -> pd.DataFrame:
    """The page counts from 1, code from 0."""
    return table.assign(**{name: table[name] - 1 for name in ("layer", "head", "query", "key")})


def test_inside(start: Start, everything: Path, run_code: Any) -> None:
    at = start(text="hello", explore_tab="Inside", kind="decoder", layer="1", head="2", step="3", explained="weight.2")
    again = run_code(programs(at)[0])
    assert again["inside"].place == ("decoder", 0, 1, 2)
    assert "Explanation(address='weight.2'" in again["said"]


def test_numbers(start: Start, everything: Path, run_code: Any) -> None:
    at = start(text="hello", explore_tab="Export", export_format="table", kind="encoder", layer="1", head="2")
    again = run_code(programs(at)[0])["table"]
    assert again.to_csv(index=False) == from_zero(at.dataframe[0].value).to_csv(index=False)


@pytest.mark.parametrize("format", ["npz", "csv", "html"])
def test_export(start: Start, everything: Path, run_code: Any, tmp_path: Path, format: str) -> None:
    at = start(**EXPLORE, explore_tab="Export", export_format=format)
    if format == "html":
        at.button(key="export-prepare").click().run()
    run_code(programs(at)[0])
    (made,) = tmp_path.glob(f"*.{format}")
    name = at.get("download_button")[-1].proto.label.replace("\\", "")
    assert f"Download {made.name} (" in name
    if format == "csv":
        assert len(made.read_text().splitlines()) > 100


@pytest.mark.parametrize(
    "query", [{"text": "abc", "beam": "3", "node": "2", "stop": "first"}, {"kind": "decoder", "alpha": "1.25"}]
)
def test_search(start: Start, everything: Path, run_code: Any, query: dict[str, str]) -> None:
    at = start(decoding="beam", **query, **CODE)
    assert shown(run_code(lines_of_pictures(at))) == on_page(at)
    at = start(decoding="beam", **query, explore_tab="Heads")
    assert shown(run_code(programs(at)[0])) == on_page(at, 5)


def test_how_it_learned(start: Start, everything: Path, run_code: Any) -> None:
    at = start("train", learned="true", checkpoint="reverse-small", text=HOSTILE, moment="3", position="2", kind="decoder")
    assert shown(run_code(programs(at)[0])) == on_page(at, 1)


@pytest.mark.parametrize(
    "query",
    [
        {"a_snapshot": "8", "kind": "decoder", "layer": "1", "head": "2", "b_head": "mean", "scale": "largest"},
        {"b_text": HOSTILE, "b_strategy": "beam", "b_beam": "3"},
        {"b_strategy": "sample", "b_seed": "7", "b_temperature": "1.5", "device": "cpu"},
    ],
)
def test_compare(start: Start, everything: Path, run_code: Any, query: dict[str, str]) -> None:
    at = start("compare", **OPENINGS["compare"] | query)
    (program,) = programs(at)
    assert shown(run_code(program)) == on_page(at, 0, 1)


@pytest.mark.parametrize(
    ("page", "name", "title"),
    [*((None, "explore_tab", title) for title in tables.TABS), *(("masks", "masks_tab", title) for title in masks_page.TABS)],
)
def test_every_tab_shows_code_that_runs(
    start: Start, everything: Path, run_code: Any, page: str | None, name: str, title: str
) -> None:
    """Those that are added too; what is made by a button has its code below it."""
    key = "code" if page else "code_of_tab"
    at = start(page, **{**OPENINGS[page], name: title, key: "true"})
    folds = [fold for fold in at.expander if fold.label == "Show the code"]
    (fold,) = folds
    run_code(fold.code[0].value)


@pytest.mark.parametrize(
    ("tab", "format"), [("Heads", "html"), ("Masks", "html"), ("Export", "table"), ("Export", "npz"), ("Export", "code")]
)
@pytest.mark.parametrize("name", ["run", "tree"])
def test_open(start: Start, everything: Path, run_code: Any, tmp_path: Path, name: str, tab: str, format: str) -> None:
    held = files(name)
    (tmp_path / f"{name}.npz").write_bytes(to_bytes(held[name].trace))
    place = {"kind": "decoder", "layer": "2", "head": "1", "node": "2"}
    at = start(None, held, checkpoint="trace file", explore_tab=tab, export_format=format, **place)
    n_charts = 4 if name == "run" else 5
    if format == "code":
        assert shown(run_code(lines_of_pictures(at))) == on_page(at, 0, n_charts)
        return
    again = run_code(programs(at)[0])
    if tab in ("Heads", "Masks"):
        assert shown(again) == on_page(at, n_charts)
    elif format == "table":
        assert again["table"].to_csv(index=False) == from_zero(at.dataframe[-1].value).to_csv(index=False)
    else:
        (made,) = set(tmp_path.glob("attention-*.npz"))
        assert is_same(load_trace(made), held[name].trace)


MASKS = {
    "sources": f"hello\n{HOSTILE}\nab",
    "targets": "olleh\n\nb'a",
    "sentence": "2",
    "kind": "cross",
    "layer": "2",
    "head": "3",
}
CHANGED = {"edits": "cross:1-2, decoder.1.2:zero", "mistake": "no-causal"}


@pytest.mark.parametrize(
    ("tab", "query"),
    [
        ("Masks", {}),
        ("Masks", {"masks_of": "sentence", **CHANGED}),
        ("Scores to weights", {"fill": "-1e9", "precision": "float16", "row": "3", **CHANGED}),
        ("Change and run again", CHANGED),
        ("Change and run again", {"head": "mean"}),
        ("Loss", CHANGED),
        ("Loss", {"targets": "", "projector": "true"}),
    ],
)
def test_pictures_of_masks(start: Start, everything: Path, run_code: Any, tab: str, query: dict[str, str]) -> None:
    at = start("masks", **{**MASKS, **query}, masks_tab=tab)
    (program,) = programs(at)
    assert pictures(at)
    assert shown(run_code(program)) == on_page(at)


def test_the_one_mask_of_a_phone(start: Start, everything: Path, run_code: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "is_narrow", lambda: True)
    at = start("masks", **{**MASKS, "kind": "decoder"})
    (program,) = programs(at)
    assert shown(run_code(program)) == on_page(at)


def test_the_effect_over_many_strings(start: Start, everything: Path, run_code: Any) -> None:
    at = start("masks", sources="hello", masks_tab="Change and run again", edits="cross:1-2", effect="true")
    again = run_code(programs(at)[0])
    assert "Effect(samples=500" in again["said"]
    changed = again["said"].split("changed=")[1].split(")")[0]
    assert f"{percent_words(float(changed), 1)} of the outputs changed" in said(at)


def test_the_certificate(start: Start, everything: Path, run_code: Any) -> None:
    at = start("masks", sources="hello", masks_tab="Certificate", mistake="no-causal", certificate="true")
    again = run_code(programs(at)[0])
    assert not again["report"].sound
    assert again["report"].headline in said(at)


def test_the_gallery(start: Start, everything: Path, run_code: Any) -> None:
    at = start("masks", **MASKS, masks_tab="Mistakes", **CHANGED)
    found = run_code(programs(at)[0])["changes"]
    cards = said(at)
    for name, numbers in found.items():
        assert f"{numbers['changed']} of 3 sentences come out differently" in cards, name
        assert f"Loss on the targets: {numbers['loss'][0]:.2g} → {numbers['loss'][1]:.2g}".replace("nan", "NaN") in cards, name
        if numbers["forbidden"] and numbers["forbidden"][1] > 0:
            assert f"{percent_words(numbers['forbidden'][1], 1)} of the weight" in cards, name
    assert len(found) == cards.count("**Here:**") == 7


def test_train_shows_the_command_of_the_form_and_of_the_job(start: Start, everything: Path) -> None:
    at = start("train", train_task="sort", train_variant="post-norm", train_d_model="64", train_steps="300", train_name="mine")
    of_form, of_job = (" ".join(line.replace("\\\n", " ").split()) for line in commands(at))
    assert of_form.startswith("python -m transformer_viz train sort --variant post-norm")
    assert {"--d-model 64", "--steps 300", "-o trained/mine"} <= {
        f"--{part}".replace("--o ", "-o ") for part in _parts(of_form)
    }
    assert of_job.endswith("-o trained/first")


def _parts(line: str) -> list[str]:
    head, _, output = line.partition(" -o ")
    return [*(part.strip() for part in head.split("--")[1:]), f"o {output}"]


def test_the_projector_shows_maps_only(start: Start, everything: Path) -> None:
    assert not programs(start(text="abc", projector="true"))


def test_only_public_names_are_shown(start: Start, everything: Path) -> None:
    """What a person copies must not lean on the inside of the package."""
    rooms: list[Any] = [
        ({**EXPLORE}, None),
        (OPENINGS["compare"] | {"a_snapshot": "8"}, "compare"),
        ({"decoding": "beam", "node": "2"}, None),
        ({"checkpoint": "reverse-small", "learned": "true"}, "train"),
        (MASKS, "masks"),
    ]
    for query, page in rooms:
        for program in programs(start(page, **query)):
            assert [line for line in program.splitlines() if "import" in line] == ["import transformer_viz as tv"]


def test_survey(start: Start, everything: Path, run_code: Any) -> None:
    for query in (
        {"survey_number": "entropy_share", "kind": "decoder", "layer": "1", "head": "2"},
        {"survey_beside": "reverse-small"},
    ):
        at = start("survey", **query)
        again = run_code(programs(at)[0])["figures"]
        there = on_page(at)[: len(again)]
        assert there and [one["data"] for one in map(picture_of, again)] == [one["data"] for one in there]


def test_names_of_checkpoints_are_found_as_the_page_finds_them(folder: Path) -> None:
    """Guards the tests above: the lines load the tiny checkpoint, not a shipped one."""
    assert checkpoints.find_name("reverse") == folder / "reverse"
