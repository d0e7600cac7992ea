"""What stands under a curtain in each step of each lesson: never a page, and always what is asked."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.figures.sent import numbers
from tests.needs import slow
from tests.views.drawn import charts
from tests.views.viewer import array, content, has_viewer, viewer
from transformer_viz.language import ENGLISH, say, speaking
from transformer_viz.learn.example_run import example_of
from transformer_viz.learn.lesson import LESSONS, Ask, find_lessons, read_lesson
from transformer_viz.learn.links import Link
from transformer_viz.learn.questions import COVERS, spot_of
from transformer_viz.trace.hidden_answer import COVERED

FILES = [*find_lessons(), *find_lessons(LESSONS / "zh")]
# In every language they are the same steps of the same runs: `lesson check` says where they differ.
GONE_THROUGH = [file if file.parent.name == "en" else slow(file) for file in FILES]


def hidden_row(at: AppTest, ask: Ask, link: Link, *, is_hidden: bool) -> None:
    """Whether the viewer was sent nothing of the row that is asked about: no weight in any head, no mask, no token."""
    example = example_of(link.address)
    assert example is not None
    spot, trace = spot_of(ask, example.focus), example.trace
    kind, row = content(at)["kinds"][spot.kind], spot.row
    rows = slice(None) if COVERS[ask.kind] == "mask" else slice(row, row + 1)
    weights, reasons = array(kind["weights"])[:, :, rows], array(kind["reasons"])[..., rows, :]
    assert (weights == 0).all() == is_hidden
    assert not (is_hidden and reasons.any())
    assert (kind["covered"][0] <= row < kind["covered"][1]) == is_hidden
    small = numbers(kind["mosaic"]["data"][0]["z"])
    places = [y for y in range(len(small)) if row == y % kind["mosaic"]["layout"]["meta"]["pitch_y"]]
    assert np.isnan(small[places]).all() == is_hidden
    if ask.kind == "writes":
        written = [token["text"] for token in viewer(at)["parts"].get("output", content(at)["output"])]
        assert written[row] == ("?" if is_hidden else trace.output_tokens[row])


def hidden_moment(at: AppTest, ask: Ask, link: Link, language: str) -> None:
    """Whether the page of a training was sent no moment after the one that is asked about, and of this one no later row."""
    sent, row = content(at), (ask.row or 1) - 1
    last = len(sent["moments"]) - 1
    assert str(sent["moments"][-1]) == link.values["moment"]
    with speaking(language):
        assert sent["output"][-1]["title"] == say(COVERED)
    written = [token["text"] for token in sent["written"][-1]]
    assert {*written[row:]} == {"?"}
    assert not any(bars["x"] for bars in sent["candidates"][-1][row:])
    for kind in sent["kinds"].values():
        then, shape = kind["measures"][str(last)], kind["shape"]
        weights = array(then["weights"])
        if kind["linked"]["kind"] != "encoder":
            assert np.isnan(weights[:, :, row:]).all() and not np.isnan(weights[:, :, :row]).any()
            small = numbers(then["mosaic"]["data"][0]["z"])
            assert np.isnan(small[row : shape[2]]).all()
        # The lines of all heads end before this moment.
        if kind["linked"]["kind"] == "cross":
            ways = kind["picture"]["ways"]
            assert np.isnan(array(ways["values"])[-1]).all() and not np.isnan(array(ways["values"])[:-1]).any()
            assert {head[last] for layer in ways["said"] for head in layer} == {""}


@pytest.mark.parametrize("file", GONE_THROUGH, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_no_step_is_an_empty_page_and_none_tells(start, shipped, file):
    lesson, language = read_lesson(file), file.parent.name
    before = "" if language == ENGLISH else f"{language}."
    for number, step in enumerate(lesson.steps):
        link, ask = lesson.start_of(number), step.ask
        assert link is not None
        at = start(None if link.page == "explore" else link.page, lesson=f"{before}{lesson.name}.{number + 1}")
        drawn = {one.key: one for one in charts(at)}
        assert not at.error and not at.exception, f"{lesson.name}.{number + 1}"
        assert has_viewer(at) or drawn or link.address == "/train", f"{lesson.name}.{number + 1}"
        # Where masks are asked for, no map of the page shows them.
        assert (link.page == "explore" or (link.page == "train" and link.address != "/train")) == has_viewer(at) or (
            link.page == "masks" and ask is None
        )
        if ask is None:
            continue
        if COVERS[ask.kind] in ("row", "mask") and link.page == "explore":
            hidden_row(at, ask, link, is_hidden=True)
            at.button(key="lesson-skip").click().run()
            hidden_row(at, ask, link, is_hidden=False)
        elif link.page == "train":
            hidden_moment(at, ask, link, language)
            at.button(key="lesson-skip").click().run()
            assert len(content(at)["moments"]) == len(content(at)["output"]) > 1
            assert not np.isnan(array(content(at)["kinds"]["cross"]["picture"]["ways"]["values"])).any()
        elif link.page == "masks":
            assert {*drawn} == {key for key in drawn if key.startswith("lesson-masks")}
            if ask.kind == "masked":
                # Axes and letters, and no mask: not how many cells it has, and no colour of a reason.
                assert "hello" in json.dumps(drawn["lesson-masks"].figure["layout"])
                cells = [trace for trace in drawn["lesson-masks"].figure["data"] if trace["type"] == "heatmap"]
                assert cells and all(numbers(one["z"]).shape[1] == 1 for one in cells)
                assert " of " not in str([note["text"] for note in drawn["lesson-masks"].figure["layout"]["annotations"]])
        if lesson.name == "beam" and ask.kind == "greedy-or-beam":
            at = start(None, lesson=f"{before}{lesson.name}.{number + 1}")
            # What is shown is greedy's, with all its letters.
            assert "".join(one["text"] for one in content(at)["output"]).startswith(("apiaqa", "lkji", "eegagagabb"))
            assert "search-tree-chart" not in {one.key for one in charts(at)}
