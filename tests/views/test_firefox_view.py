"""The pages with one of Firefox's translators: a decoder without self-attention, and its shortlist."""

from pathlib import Path

import pytest

from tests.needs import needs, slow
from tests.readers import firefox_files
from tests.views.drawn import CODE, codes, said, titles
from tests.views.test_drawing_view import drawings, titles_of
from tests.views.test_search_view import tab
from tests.views.viewer import viewer
from tests.views.widgets import link_of
from transformer_viz import app_folders, decode, load_model
from transformer_viz.model_options import ModelOptions
from transformer_viz.readers.firefox import folder

pytestmark = needs("sentencepiece")
NAME, TEXT = "tiny-firefox", "o gato preto dorme"


@pytest.fixture(scope="module")
def saved_translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return firefox_files.save(tmp_path_factory.mktemp("translators") / NAME).parent


@pytest.fixture(autouse=True)
def translator(saved_translator: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(app_folders.MODELS_VARIABLE, str(saved_translator))
    monkeypatch.setenv("HF_HUB_CACHE", str(saved_translator / "none"))
    monkeypatch.setattr(folder, "packaged", dict)


@pytest.mark.parametrize(("page", "query"), [(None, {}), (None, {"decoding": "beam"}), ("compare", {}), slow("masks", {})])
def test_every_page_and_tab_opens(start, page, query):
    at = start(*([page] if page else []), checkpoint=NAME, text=TEXT, **query)
    assert not at.error and not at.warning
    for title in titles(at):
        at = tab(at, title)
        assert not at.error, title


def test_it_says_why_there_is_no_self_attention_and_draws_what_is_there(start):
    at = start(checkpoint=NAME, text=TEXT, where="true")
    assert said(at).count("The decoder has no self-attention: what was written before reaches each step through") == 1
    assert [*viewer(at)["address"]["kinds"]] == ["encoder", "cross"]
    [drawing] = drawings(at)
    assert titles_of(drawing, "recurrence") == ["Recurrence (SSRU)"] * 2
    assert "no self-attention" not in said(start(text="abc"))


def test_the_shortlist_is_a_switch_of_the_page_and_its_link(start):
    at = start(checkpoint=NAME, text=TEXT, all_controls="true")
    model = load_model(NAME, "cpu")
    assert at.toggle(key="shortlist").value and "one of the 4 most frequent tokens" in said(at)
    at.toggle(key="shortlist").set_value(False).run()
    assert link_of(at)["shortlist"] == "false" and "~~" in said(at)
    free = decode(model.with_options(ModelOptions(shortlist=False)), TEXT)
    assert free.output_tokens != decode(model, TEXT).output_tokens
    assert at.session_state["last_step"] == free.n_steps - 1
    assert "checkpoint.with_shortlist(False)" in codes(start(checkpoint=NAME, text=TEXT, shortlist="false", **CODE))
