"""Compare through AppTest: two sides, one of which may fail, models of different size, and files."""

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer_viz as tv
from tests.conftest import build_model
from tests.views.drawn import programs, said
from tests.views.viewer import compared, difference, others, press, viewer
from tests.views.widgets import link_of
from transformer_viz.addresses import map_address
from transformer_viz.checkpoints import load_snapshot, save_checkpoint
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.trace.store import to_bytes
from transformer_viz.views.components.opened import Opened

BOTH = {"text": "abc", "checkpoint": "reverse", "b_text": "abd", "b_checkpoint": "reverse"}


@pytest.fixture(scope="module")
def two_sizes(saved: Path, make_snapshots: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny checkpoint, now with snapshots, and beside it `one-layer`."""
    folder = shutil.copytree(saved, tmp_path_factory.mktemp("compare") / "two")
    make_snapshots(folder / "reverse")
    task, sizes = Reverse(), {"n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1}
    n = len(task.source_vocabulary)
    model = build_model(3, source_vocabulary_size=n, target_vocabulary_size=n, **sizes)
    save_checkpoint(folder / "one-layer", model, task, variant="pre-norm", recipe={}, metrics={})
    return folder


@pytest.fixture
def model(folder: Path, two_sizes: Path, only: Callable[[Path], Path]) -> tv.Checkpoint:
    """The tiny checkpoint with its snapshots; the pages find `one-layer` too."""
    return tv.load_checkpoint(str(only(two_sizes) / "reverse"), device="cpu")


def same(at: AppTest, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(difference(at), wanted)


def head_in_focus(at: AppTest) -> tuple[object, ...]:
    return tuple(viewer(at)["start"][name] for name in ("kind", "layer", "head"))


def test_two_texts_and_swap_turns_the_sign(start, model):
    at = start("compare", **BOTH, b_snapshot="3", kind="cross", layer="1", head="2")
    a, b = tv.decode(model, "abc"), tv.decode(load_snapshot(model, 3), "abd")
    there = tv.compare(a, b).difference("cross.1.2")
    same(at, there)
    at.button(key="swap").click().run()
    same(at, -there)
    wanted = {"text": "abd", "b_text": "abc", "a_snapshot": "step 3"}
    assert {key: link_of(at)[key] for key in wanted} == wanted
    assert "b_snapshot" not in link_of(at)
    assert "text" not in others(at), "its box is the page's, which takes a default out of the address too"
    at.button(key="swap").click().run()
    same(at, there)


def test_a_press_that_comes_before_the_answer_to_a_swap_does_not_take_it_back(start, model):
    at = start("compare", **BOTH, b_snapshot="3", kind="cross", layer="1", head="2")
    heard, swapped = at.session_state["link_run"], ["abd", "abc", 3, "finished"]

    def sides() -> list[object]:
        return [at.session_state[key] for key in ("text", "b_text", "a_snapshot", "b_snapshot")]

    at.button(key="swap").click().run()
    assert sides() == swapped
    # As the browser has the boxes until the answer is there, and sends them with each press.
    at.text_input(key="text").set_value("abc")
    at.text_input(key="b_text").set_value("abd")
    at.selectbox(key="b_snapshot").set_value(3)
    press(at, head=0, heard=heard)
    assert sides() == swapped and viewer(at)["start"]["head"] == 0
    # What is typed meanwhile stays, and so does what is typed once the browser knows.
    at.text_input(key="text").set_value("xyz")
    press(at, head=1, heard=heard)
    assert sides() == ["xyz", *swapped[1:]]
    at.text_input(key="text").set_value("abc")
    press(at, head=0, heard=at.session_state["link_run"])
    assert sides() == ["abc", *swapped[1:]]


def test_it_opens_at_the_head_of_its_sentence_unless_the_address_names_one(start, model):
    largest = tv.compare(tv.decode(model, "abc"), tv.decode(model, "abd")).largest
    assert largest is not None
    wanted = (largest.kind, largest.layer, largest.head)

    assert head_in_focus(start("compare", **BOTH)) == wanted
    other = (0, 0) if wanted[1:] != (0, 0) else (0, 1)
    named = start("compare", **BOTH, kind="cross", layer="1", head=str(other[1] + 1))
    assert head_in_focus(named) == ("cross", *other)


def test_the_head_it_opens_at_by_itself_is_for_it_alone(start, model, visit):
    at = start(text="abc")
    # One at which Explore opens by itself, too.
    layer, head = at.session_state["shown_before"][1][0]
    press(at, kind="cross", layer=layer, head=head, pin=[1, None])
    own, link = ("cross", layer, head), link_of(at)
    visit(at, "compare")
    largest = head_in_focus(at)
    assert largest != own
    assert (head_in_focus(visit(at, None)), link_of(at)) == (own, link)
    assert head_in_focus(visit(at, "compare")) == largest


def test_each_side_has_its_own_way_of_decoding(start, model):
    asked = {
        **BOTH, "a_snapshot": "8", "a_strategy": "beam", "a_beam": "3", "b_strategy": "sample", "b_temperature": "1.5",
        "b_seed": "0", "kind": "decoder", "layer": "1", "head": "mean",
    }  # fmt: skip
    at = start("compare", **asked)
    a = tv.decode(load_snapshot(model, 8), "abc", strategy="beam", beam_size=3)
    b = tv.decode(model, "abd", strategy="sample", temperature=1.5, seed=0)
    same(at, tv.compare(a, b).difference("decoder.1.mean"))
    assert "b_seed" not in link_of(at), "a default stays out"
    np.testing.assert_array_equal(difference(start("compare", **link_of(at))), difference(at))


def test_b_reads_what_a_writes_and_not_the_other_way_round_as_well(start, model):
    at = start("compare", **BOTH, b_snapshot="1", b_strategy="forced", kind="cross", layer="1", head="1")
    a = tv.decode(model, "abc")
    target = tuple(token for token in a.output_tokens if token != "<end>")
    same(at, tv.compare(a, tv.decode(load_snapshot(model, 1), "abd", target=target)).difference("cross.1.1"))
    at.selectbox(key="a_strategy").set_value("forced").run()
    assert said(at).count("Each side reads what the other one writes") == 2


@pytest.mark.parametrize("bad", ["b_text", "text"])
def test_one_sides_error_leaves_the_other_one_on_the_screen(start, model, bad):
    at = start("compare", **{**BOTH, bad: "x🙂"})
    assert "Character 2 is" in said(at)
    assert at.text_input(key=bad).value == link_of(at)[bad] == "x🙂"
    assert viewer(at)["beside"] is None
    at.text_input(key=bad).set_value("abc").run()
    assert viewer(at)["beside"] is not None


def test_models_of_different_size(start, model):
    at = start("compare", **{**BOTH, "b_checkpoint": "one-layer"}, kind="cross", layer="2", head="3")
    assert "A has 2 layers of 3 heads, B 1 layer of 2 heads." in said(at)
    one = tv.load_checkpoint(str(model.folder.parent / "one-layer"), device="cpu")
    same(at, tv.compare(tv.decode(model, "abc"), tv.decode(one, "abd")).difference("cross.2.3", "cross.1.2"))
    assert compared(at)["mosaics"]["cross"]["layout"]["meta"]["heads"] == 2


def test_it_never_opens_on_two_equal_runs(start, model, visit):
    at = start("compare")
    assert (at.text_input(key="text").value, at.text_input(key="b_text").value) == ("reversethis", "revertethis")
    at = visit(start(text="hello 7"), "compare")
    assert (at.text_input(key="text").value, at.text_input(key="b_text").value) == ("hello 7", "hello 8")


def put(at: AppTest, **traces: tv.Trace) -> AppTest:
    """As if the files had been dropped."""
    at.session_state["opened"] = {
        name: Opened(tv.load_trace(io.BytesIO(to_bytes(trace))), f"{name}.npz", name) for name, trace in traces.items()
    }
    return at.run()


def test_opened_files_are_sides(start, model, run_code):
    a, b = tv.decode(model, "abc"), tv.decode(model, "<b>xy")
    at = put(start("compare", **BOTH, code="true"), first=a, other=b)
    at.selectbox(key="a_file").set_value("first").run()
    at.selectbox(key="b_file").set_value("other").run()
    kind, layer, head = (at.session_state[key] for key in ("kind", "layer", "head"))
    laid = tv.compare(a, b).one_head(map_address(kind, layer, head))
    same(at, laid.difference)
    assert (link_of(at)["a_file"], link_of(at)["b_file"]) == ("first", "other")
    # The lines of Python name the files, and give the same difference.
    tv.save_trace(a, "first.npz")
    tv.save_trace(b, "other.npz")
    np.testing.assert_array_equal(run_code(programs(at)[0])["difference"], laid.difference)
    at.selectbox(key="a_file").set_value("").run()
    assert at.text_input(key="text").value == "abc"


def test_files_that_have_nothing_in_common(start, model):
    weights = np.full((2, 3), 1 / 3)
    cross = tv.Trace.from_arrays(cross=weights, source_tokens=list("abc"), target_tokens=list("xy"))
    encoder = tv.Trace.from_arrays(encoder=np.full((3, 3), 1 / 3), source_tokens=list("abc"))
    at = put(start("compare", **BOTH), cross=cross, encoder=encoder)
    at.selectbox(key="a_file").set_value("cross").run()
    assert "Only B has encoder self-attention and decoder self-attention." in said(at)
    at.selectbox(key="b_file").set_value("encoder").run()
    assert "A and B have no kind of attention in common" in said(at)
    at.selectbox(key="b_file").set_value("").run()
    at.selectbox(key="b_strategy").set_value("forced").run()
    assert "file does not say what was written" in said(at)
