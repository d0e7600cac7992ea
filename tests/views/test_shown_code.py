"""“Show the code”: below each view, lines that make again, to the last number, what is on the screen."""

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.figures.sent import numbers
from tests.trace.conftest import is_same
from tests.views import viewer
from tests.views.drawn import CODE, codes, finished, on_page, pictures, programs, said, shown, table_of
from tests.views.rooms import OPENINGS, files
from transformer_viz import load_trace
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.trace.store import to_bytes
from transformer_viz.views.components import screen
from transformer_viz.views.explore import tables
from transformer_viz.views.masks import page as masks_page

HOSTILE = "a'b\\\"<i>$x$"
OPEN = dict.fromkeys(("code", "code_of_tab", "code_of_job", "code_of_moments"), "true")
"""Every fold is open."""
EXPLORE = {"text": HOSTILE, "kind": "decoder", "layer": "2", "head": "max", "step": "4"}
WHAT_IF, TRIAL = {**EXPLORE, "explore_tab": "What if"}, {"text": "hello", "explore_tab": "Heads", "heads_part": "On trial"}
ON_TRIAL = {**TRIAL, "kind": "decoder"}
SEARCH = {"decoding": "beam", "text": "abc", "beam": "3", "node": "2"}
FILM = {"learned": "true", "checkpoint": "reverse-small", "text": HOSTILE, "position": "2", "kind": "decoder"}
SIDES = {"a_snapshot": "8", "kind": "decoder", "layer": "1", "head": "2", "scale": "largest"}
SAMPLED = {"b_strategy": "sample", "b_seed": "7", "b_temperature": "1.5", "device": "cpu"}
MASKS = {"sources": f"hello\n{HOSTILE}\nab", "targets": "olleh\n\nb'a", "sentence": "2"}
MASKS |= {"kind": "cross", "layer": "2", "head": "3"}
CHANGED = {"edits": "cross:1-2, decoder.1.2:zero", "mistake": "no-causal"}
SCORES = {"fill": "-1e9", "precision": "float16"}


@pytest.mark.parametrize(
    ("page", "query", "first", "last"),
    [
        (None, {**WHAT_IF, "what_if_prefix": '["x", "\'"]'}, 0, None),
        (None, {**WHAT_IF, "what_if_how": "a beginning of your own", "what_if_begin": "x'\""}, 0, None),
        (None, {**WHAT_IF, "what_if_how": "banned tokens", "what_if_ban": "a"}, 0, None),
        (None, {**WHAT_IF, "what_if_how": "a target of your own", "what_if_target": "x\\y"}, 0, None),
        (None, {**EXPLORE, "explore_tab": "Heads", "tint": "entropy_share"}, 0, None),
        (None, {**EXPLORE, "explore_tab": "Masks"}, 0, None),
        (None, {**ON_TRIAL, "question": "Is its order faithful?", "curves": "true"}, 0, None),
        (None, {**SEARCH, "explore_tab": "Heads", "alpha": "1.25"}, 1, None),
        ("masks", {**MASKS, "masks_tab": "Masks"}, 0, None),
        ("masks", {**MASKS, "masks_tab": "Loss", **CHANGED}, 0, None),
    ],
)
def test_the_pictures_are_drawn_again_by_public_names(start, everything, run_code, page, query, first, last):
    at = start(page, **OPEN | query)
    lines = programs(at)[0]
    assert on_page(at, first, last)
    assert shown(run_code(lines)) == on_page(at, first, last)
    assert [line for line in lines.splitlines() if "import" in line] == ["import transformer_viz as tv"]


def test_the_moment_of_a_training(start, everything, run_code):
    at = start("train", **OPEN | FILM)
    film, *small = shown(run_code(programs(at)[0]))
    begin, kinds = viewer.viewer(at)["start"], viewer.content(at)["kinds"]
    moment, kind = str(viewer.content(at)["moments"].index(begin["moment"])), kinds[begin["kind"]]
    wanted = viewer.array(kind["measures"][moment]["weights"])[kind["numbers"].index(begin["layer"]), begin["head"]]
    drawn = viewer.heatmap(film)
    np.testing.assert_array_equal(drawn, np.where(np.isnan(drawn), np.nan, wanted))
    assert np.isfinite(drawn).any() and len(small) == len(kinds)
    for figure, of_kind in zip(small, kinds.values(), strict=True):
        np.testing.assert_array_equal(viewer.heatmap(figure), viewer.heatmap(of_kind["measures"][moment]["mosaic"]))


def test_the_scores_of_a_head(start, everything, run_code):
    at = start("masks", **OPEN | MASKS, masks_tab="Scores to weights", **SCORES, **CHANGED)
    viewer.press(at, row=2)
    [figure] = shown(run_code(programs(at)[0]))
    sent = viewer.one_head(at)
    maps = [[trace for trace in one["data"] if trace["type"] == "heatmap"] for one in (figure, sent)]
    for drawn, wanted in zip(*maps, strict=True):
        np.testing.assert_array_equal(numbers(drawn["z"]), numbers(wanted["z"]))
    assert len(maps[0]) >= 3
    [frame, *_] = figure["layout"]["shapes"]
    assert (frame["y0"] + frame["y1"]) / 2 == viewer.viewer(at)["start"]["row"] == 2


@pytest.mark.parametrize(
    ("query", "first"),
    [
        (EXPLORE, 0),
        ({**EXPLORE, "measure": "value"}, 0),
        ({**EXPLORE, "measure": "cause", "cause_mode": "deleted"}, 0),
        ({"text": "hello", "checkpoint": "reverse-small", "device": "cpu"}, 0),
        (SEARCH, 1),
    ],
)
def test_the_picture_of_explore_is_drawn_again(start, everything, run_code, query, first):
    """In the order of the page, after the tree of a search; the numbers are those that the viewer has."""
    at = start(**query, **OPEN | CODE)
    again = shown(run_code(codes(at)))
    assert again[:first] == on_page(at, 0, first)
    is_the_picture(again[first:], at)


@pytest.mark.parametrize("query", [SIDES, {"b_text": HOSTILE, "b_strategy": "beam", "b_beam": "3"}, SAMPLED])
def test_the_picture_of_compare_is_drawn_again(start, everything, run_code, query):
    at = start("compare", **OPEN | OPENINGS["compare"] | query)
    [figure] = shown(run_code(programs(at)[0]))
    parts = [numbers(one["z"]) for one in figure["data"] if one.get("coloraxis") == "coloraxis2"]
    drawn, wanted = np.where(np.isfinite(parts).any(0), np.nansum(parts, axis=0), np.nan), viewer.difference(at)
    np.testing.assert_array_equal(drawn, np.where(np.isnan(drawn), np.nan, wanted))
    assert np.isfinite(drawn).any()


def is_the_picture(figures: list[dict[str, Any]], at: AppTest) -> None:
    """Whether these are the large map and the small maps that are to be seen; the rows from the step on are empty."""
    large, *small = map(viewer.heatmap, figures)
    wanted = viewer.large_map(at)
    np.testing.assert_array_equal(large, np.where(np.isnan(large), np.nan, wanted))
    assert np.isfinite(large).any()
    for drawn, map_ in zip(small, viewer.small_maps(at), strict=True):
        np.testing.assert_array_equal(drawn, map_)


@pytest.mark.parametrize(
    "query",
    [{"survey_number": "entropy_share", "kind": "decoder", "layer": "1", "head": "2"}, {"survey_beside": "reverse-small"}],
)
def test_survey(start, everything, run_code, query):
    at = start("survey", **OPEN, **query)
    again, tables = shown(run_code(programs(at)[0])), viewer.tables(at)
    assert [one["layout"]["meta"]["kind"] for one in again] == [*tables]
    for drawn, table in zip(again, tables.values(), strict=True):
        np.testing.assert_array_equal(numbers(drawn["data"][0]["z"]), numbers(table["data"][0]["z"]))
        assert drawn["data"][0]["text"] == table["data"][0]["text"]


@pytest.mark.parametrize("is_narrow", [True, False])
def test_the_masks_of_a_sentence_and_its_weights(start, everything, run_code, monkeypatch, is_narrow):
    """On a phone these alone; else all masks one by one too."""
    monkeypatch.setattr(screen, "is_narrow", lambda: is_narrow)
    at = start("masks", **OPEN, **{**MASKS, "kind": "decoder"}, masks_tab="Masks", masks_of="sentence", **CHANGED)
    *all_of_them, mask, weights = shown(run_code(programs(at)[0]))
    assert all_of_them == on_page(at) and bool(all_of_them) is not is_narrow
    np.testing.assert_array_equal(viewer.heatmap(mask), viewer.reasons(at))
    is_the_head(weights, at)


@pytest.mark.parametrize("more", [CHANGED, {"head": "mean"}])
def test_a_change(start, everything, run_code, more):
    at = start("masks", **OPEN, **MASKS | {"masks_tab": "Change and run again"} | more)
    mask, change, before, after = shown(run_code(programs(at)[0]))
    is_the_head(after, at)
    drawn, wanted = viewer.heatmap(change), viewer.difference(at)
    np.testing.assert_allclose(drawn, np.where(np.isnan(drawn), np.nan, wanted), atol=1e-6)
    assert np.isfinite(viewer.heatmap(before)).any() and viewer.heatmap(mask).shape == drawn.shape


def is_the_head(figure: dict[str, Any], at: AppTest) -> None:
    """Whether this is the large map, of which masked cells are empty."""
    drawn, wanted = viewer.heatmap(figure), viewer.large_map(at)
    assert np.isfinite(drawn).any()
    np.testing.assert_allclose(drawn, np.where(np.isnan(drawn), np.nan, wanted), atol=1e-6)


@pytest.mark.parametrize("more", [{"trial_every": "true"}, {"trial_texts": "ab\n'x\n"}])
def test_knocked_out(start, everything, run_code, more):
    more = {"trial_samples": "20", "trial_how": "mean", **more}
    at = start(**OPEN, **TRIAL, question="Is it needed?", knock_out="true", **more)
    again = run_code(programs(at)[0])
    assert again["texts"] == ["ab", "'x"] if "trial_texts" in more else len(again["texts"]) == 20
    found = again["knock_out"]
    if "trial_every" in more:
        stays = table_of(at, "log p lost")["answers that stay"]
        np.testing.assert_array_equal(stays, [each.stays.value for each in found.heads])
    else:
        assert f"{percent_words(found.heads[0].exact.value)} without this one" in said(at)


def test_the_verdict(start, everything, run_code):
    at = start(**OPEN, **TRIAL, verdict="true", kind="decoder")
    tops = run_code(programs(at)[0])["table"]["top"].tolist()
    np.testing.assert_allclose(table_of(at, "map")["at the cause, word"], tops)


def test_inside(start, everything, run_code):
    place = {"kind": "decoder", "layer": "1", "head": "2", "step": "3"}
    again = run_code(programs(start(**OPEN, text="hello", explore_tab="Inside", **place, explained="weight.2"))[0])
    assert again["inside"].address == "decoder.1.2:3"
    assert "Explanation(address='weight.2'" in again["said"]


def test_export(start, everything, run_code, tmp_path, offered):
    """A page, and the run as data: what the lines save is what is offered."""
    at = start(**OPEN, **EXPLORE, explore_tab="Export")
    at.button(key="export-prepare").click().run()
    for name in ("npz", "csv", "focus"):
        at.button(key=f"data-{name}").click().run()
        # The page is saved each time.
        for page in tmp_path.glob("*.html"):
            page.unlink()
        run_code(programs(at)[0])
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(path.rsplit(".")[-1] for path in made) == ["csv", "csv", "html", "npz"]
    assert made.keys() == offered.keys()
    for name in (name for name in made if name.endswith(".csv")):
        assert made[name] == offered[name]


OF_MASKS = [title for title in masks_page.TABS if title not in ("Certificate", "From a configuration")]
"""Those take seconds, and have tests of their own."""


@pytest.mark.parametrize(
    ("page", "name", "title"),
    [*((None, "explore_tab", title) for title in tables.TABS), *(("masks", "masks_tab", title) for title in OF_MASKS)],
)
def test_every_tab_shows_code_that_runs(start, everything, run_code, page, name, title):
    """Those that are added too; what is made by a button has its code below it."""
    at = start(page, **{**OPENINGS[page], name: title, "code" if page else "code_of_tab": "true"})
    (lines,) = programs(at) + programs(at, "bash")
    run_code(lines)


@pytest.mark.parametrize("tab", ["Heads", "Masks", "Export"])
@pytest.mark.parametrize("name", ["run", "tree"])
def test_open(start, everything, run_code, tmp_path, name, tab):
    held = files(name)
    (tmp_path / f"{name}.npz").write_bytes(to_bytes(held[name].trace))
    place = {"kind": "decoder", "layer": "2", "head": "1", "node": "2"}
    at = start(None, held, checkpoint="trace file", explore_tab=tab, **place, **OPEN)
    if tab == "Export":
        at.button(key="data-npz").click().run()
    n_charts = 0 if name == "run" else 1
    again = run_code(programs(at)[0])
    if tab == "Export":
        figures = shown(again)
        assert figures[:n_charts] == on_page(at, 0, n_charts)
        is_the_picture(figures[n_charts:], at)
        (made,) = set(tmp_path.glob("attention-*.npz"))
        assert is_same(load_trace(made), held[name].trace)
    else:
        assert shown(again) == on_page(at, n_charts)


@pytest.mark.slow
def test_the_effect_over_many_strings(start, everything, run_code):
    at = finished(start("masks", **OPEN, sources="hello", masks_tab="Change and run again", edits="cross:1-2", effect="true"))
    again = run_code(programs(at)[0])
    assert "Effect(samples=500" in again["said"]
    changed = again["said"].split("changed=")[1].split(")")[0]
    assert f"{percent_words(float(changed), 1)} of the outputs changed" in said(at)


@pytest.mark.slow
def test_the_certificate(start, everything, run_code):
    at = start("masks", **OPEN, sources="hello", masks_tab="Certificate", mistake="no-causal", certificate="true")
    report = run_code(programs(at)[0])["report"]
    assert not report.sound and report.headline in said(at)
    assert "This looks like **No causal mask**" in said(at)


def test_the_gallery(start, everything, run_code):
    at = start("masks", **OPEN, **MASKS, masks_tab="Mistakes", **CHANGED)
    found = run_code(programs(at)[0])["changes"]
    cards = said(at)
    for name, their in found.items():
        assert f"{their['changed']} of 3 sentences come out differently" in cards, name
        assert f"Loss on the targets: {their['loss'][0]:.2g} → {their['loss'][1]:.2g}".replace("nan", "NaN") in cards, name
        if their["forbidden"] and their["forbidden"][1] > 0:
            assert f"{percent_words(their['forbidden'][1], 1)} of the weight" in cards, name
    assert len(found) == cards.count("**Here:**") == 7


def test_train_shows_the_command_of_the_form_and_of_the_job(start, everything):
    form = {"train_task": "sort", "train_variant": "post-norm", "train_d_model": "64", "train_steps": "300"}
    at = start("train", **OPEN, **form, train_name="mine")
    of_form, of_job = (" ".join(line.replace("\\\n", " ").split()) for line in programs(at, "bash"))
    assert of_form.startswith("python -m transformer_viz train sort --variant post-norm")
    assert all(part in of_form for part in ("--d-model 64", "--steps 300", "-o trained/mine"))
    assert of_job.endswith("-o trained/first")
    assert pictures(at)
