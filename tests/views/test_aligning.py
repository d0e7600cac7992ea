"""The head that aligns, in the tab Heads: found on request, chosen by hand, and in the player above."""

import numpy as np

import transformer_viz as tv
from tests.tiny_models import MARIAN
from tests.views.drawn import codes, said
from tests.views.viewer import array, viewer
from tests.views.widgets import link_of
from transformer_viz.analysis.alignment_head import AlignmentHead
from transformer_viz.evaluation.evaluate import sample_texts
from transformer_viz.views.cache import model_list
from transformer_viz.views.components.opened import Opened

HERE = {"text": "hello", "explore_tab": "Heads"}


def test_a_click_finds_it_and_the_player_follows(start):
    at = start(**HERE)
    assert viewer(at)["parts"]["aligner"] is None and at.session_state.aligner == ""
    at.button(key="aligner-find").click().run()
    model = model_list.load("reverse", "auto")
    found = tv.alignment_heads(model, sample_texts(model, 40, 0))
    best = AlignmentHead(found.best().layer, found.best().head)
    assert at.selectbox(key="aligner").value == best.address
    assert f"{found.best()} in the row that writes the word" in said(at)
    assert f"alignment_heads={found.alignment_heads}" in codes(at)
    sent = viewer(at)["parts"]["aligner"]
    assert sent["label"] == str(best)
    np.testing.assert_allclose(array(sent["weights"]), best.map_of(tv.decode(model, "hello")), atol=1e-6)


def test_a_link_and_a_hand_choose_it(start):
    at = start(**HERE, aligner="1.2.reads")
    assert viewer(at)["parts"]["aligner"]["label"] == "L1 H2 (reads it)" and not at.warning
    # The last row is read by none.
    assert np.isnan(array(viewer(at)["parts"]["aligner"]["weights"])[-1]).all()
    at.selectbox(key="aligner").select("1.1").run()
    assert viewer(at)["parts"]["aligner"]["label"] == "L1 H1" and link_of(at)["aligner"] == "L1 H1"
    at.selectbox(key="aligner").select("").run()
    assert viewer(at)["parts"]["aligner"] is None and "aligner" not in link_of(at)


def test_another_model_has_another_one_and_gets_its_own_back(start, models):
    at = start(checkpoint=MARIAN, text="das Haus", explore_tab="Heads")
    assert at.selectbox(key="aligned_by").options == [
        "pt-en: pairs aligned by hand", "en-pt: pairs aligned by hand", "its effect on this output"
    ]  # fmt: skip
    at.button(key="aligner-find").click().run()
    chosen = at.session_state.aligner
    assert chosen and any("this output loses most" in each.value for each in at.markdown)
    at.selectbox(key="checkpoint").select("reverse").run()
    assert at.session_state.aligner == "" and viewer(at)["parts"]["aligner"] is None
    at.selectbox(key="checkpoint").select(MARIAN).run()
    assert at.session_state.aligner == chosen and viewer(at)["parts"]["aligner"] is not None


def test_a_file_has_the_box_alone(start):
    trace = tv.decode(model_list.load("reverse", "auto"), "hello")
    held = {"run.npz": Opened(trace, "run.npz", "f-run")}
    at = start(None, held, checkpoint="trace file", explore_tab="Heads", aligner="1.1")
    assert viewer(at)["parts"]["aligner"]["label"] == "L1 H1"
    assert not [button for button in at.button if button.key == "aligner-find"]
