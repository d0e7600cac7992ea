"""A text that cannot be read: the error offers a way that works, and the last picture stays; words about a head go there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views import viewer
from tests.views.drawn import press
from transformer_viz import load_checkpoint, tasks
from transformer_viz.analysis.head_order import graded_head
from transformer_viz.analysis.query_rows import best_head
from transformer_viz.tracing.decode import decode
from transformer_viz.views.components.ways import readable_parts, readers

BEGUN = {"what_if_how": "a beginning of your own", "what_if_begin": "xy"}
REVERSE = tasks.make_task("reverse", {"alphabet": "abc", "max_length": 5, "trained_lengths": [1, 5]})


@given(st.text("abcxé ", max_size=12))
def test_every_way_that_is_offered_is_readable_and_a_part_of_the_text(text):
    for part in readable_parts(REVERSE, text).values():
        assert REVERSE.read(part)
        rest = iter(text)
        assert all(symbol in rest for symbol in part), "its characters, in their order"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("abcabcabc", {"Use the first 5": "abcab"}),
        ("aébé", {"Leave out what it does not know": "ab"}),
        ("aébcabcabc", {"Use the first 5": "abcab"}),
        ("é", {}),
        ("", {}),
    ],
)
def test_what_is_offered(text, wanted):
    assert readable_parts(REVERSE, text) == wanted


def test_other_models_that_read_it_are_named_in_their_order():
    others = [
        ("small", REVERSE),
        ("copy", tasks.make_task("copy")),
        ("sort", tasks.make_task("sort")),
        ("shift", tasks.make_task("shift")),
    ]
    assert readers("hello", others) == ["copy", "sort"]


def test_too_long_is_cut_by_a_click_and_what_was_shown_stays(start, shipped):
    at = start(text="hello")
    viewer.enter(at, "ab" * 17)
    assert "at most 32" in at.error[0].value
    assert any("The last picture, of hello" in caption.value for caption in at.caption)
    assert viewer.viewer(at)["isGrey"] and viewer.content(at)["title"].startswith("hello → ")
    assert viewer.text(at) == "ab" * 17
    press(at, "Use the first 32")
    assert not at.error
    assert viewer.text(at) == "ab" * 16


def test_another_alphabet_is_read_with_another_model(start, shipped):
    at = start(text="你好")
    assert at.error
    press(at, "Read it with pinyin")
    assert not at.error
    assert (at.session_state.checkpoint, at.session_state.text) == ("pinyin", "你好")


def test_another_model_opens_on_its_own_head(start, shipped):
    """A first visitor is at a head whose weights have gradations, one who follows a link at the best head."""
    for link, place_of in (({}, graded_head), ({"step": "3"}, best_head)):
        at = start(**link)
        at.selectbox(key="checkpoint").set_value("dates").run()
        place = place_of(decode(load_checkpoint("dates"), at.session_state.text))
        assert place is not None
        assert (at.session_state.layer, at.session_state.head) == place[:2]


def test_masks_has_examples_that_its_checkpoint_reads(start, shipped):
    """Compare, too, can leave another checkpoint behind; what somebody typed stays."""
    at = start("masks")
    before = at.session_state.sources
    at.selectbox(key="checkpoint").set_value("dates").run()
    assert not at.error
    assert at.session_state.sources != before
    at.text_area(key="sources").set_value("3 March 2024").run()
    at.selectbox(key="checkpoint").set_value("reverse").run()
    assert at.session_state.sources == "3 March 2024"


def test_a_head_that_somebody_chose_stays(start, shipped):
    at = start(text="hello")
    viewer.press(at, head=3)
    at.selectbox(key="checkpoint").set_value("dates").run()
    assert at.session_state.head == 3


@pytest.mark.parametrize(
    ("page", "link"),
    [
        (None, {"text": "hello", "kind": "encoder", "explore_tab": "What if", **BEGUN}),
        ("masks", {"sources": "hello", "masks_tab": "Change and run again", "edits": "cross.1.1:zero", "kind": "encoder"}),
    ],
)
def test_an_empty_difference_says_so_and_where_the_largest_is(start, shipped, page, link):
    """The encoder reads the source alone: nothing of the output can change it."""
    at = start(page, **link)
    assert any("No difference in this head" in markdown.value for markdown in at.markdown)
    go = next(button for button in at.button if button.label.startswith("Go to L"))
    go.click().run()
    assert at.session_state.kind != "encoder"
    assert not any("No difference in this head" in markdown.value for markdown in at.markdown)


def test_another_text_moves_the_head_only_where_nobody_pressed_one(start, shipped):
    untouched, pressed = start(), start()
    began = (untouched.session_state.layer, untouched.session_state.head)
    viewer.enter(untouched, "butterfly")
    assert (untouched.session_state.layer, untouched.session_state.head) != began
    # Also where what was pressed last is the head at which the page had begun.
    for head in ((began[1] + 1) % 4, began[1]):
        viewer.press(pressed, head=head)
    viewer.enter(pressed, "butterfly")
    assert (pressed.session_state.layer, pressed.session_state.head) == began
