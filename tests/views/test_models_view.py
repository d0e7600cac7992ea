"""Explore with models that are not ours: what the page offers, shows and keeps in a link."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.needs import needs
from tests.tiny_models import BERT, GPT2, MBART, NAMES
from tests.views.drawn import codes, said, titles
from tests.views.test_answer_view import sent
from tests.views.test_search_view import tab
from tests.views.viewer import content
from tests.views.widgets import link_of
from transformer_viz import decode, load_model
from transformer_viz.errors import ModelError
from transformer_viz.model_options import ModelOptions
from transformer_viz.views.cache import model_list
from transformer_viz.views.explore.what_if_tab import MOST_FOUND, Vocabulary

pytestmark = [needs("transformers"), pytest.mark.usefixtures("models")]


def words(at: AppTest) -> str:
    """Programs too."""
    return said(at) + codes(at)


def test_checkpoints_come_first_and_models_say_their_size(start):
    options = start().selectbox(key="checkpoint").options
    assert options == ["reverse", *sorted(NAMES), "a trace file …"]
    notes = model_list.notes()
    assert notes["reverse"].startswith("writes text backwards; ")
    assert all("parameters" in notes[name] and "B" in notes[name] for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_kind_of_model_opens_and_every_tab_of_it(start, name):
    at = start(checkpoint=name)
    assert not at.error and not at.warning
    assert link_of(at)["checkpoint"].startswith(name)
    offered = titles(at)
    assert ("What if" in offered) == (name != BERT)
    for title in offered:
        at = tab(at, title)
        assert not at.error, title
        if title == "Heads":
            options = at.selectbox(key="tint").options
            assert options and not any("right token" in option for option in options)
    assert "whether it is right" not in sent(at)


def test_another_token_by_its_id_and_the_link_to_it(start):
    model = load_model(GPT2, "cpu")
    trace = decode(model, "The house")
    at = tab(start(checkpoint=GPT2, text="The house"), "What if")
    box = at.selectbox(key="what_if_token")
    assert len(box.options) == 1 + len([c for c in trace.steps[trace.n_given].candidate_ids[1:] if c != 0])
    other = trace.steps[trace.n_given].candidate_ids[3]
    box.set_value(other).run()
    assert not at.error
    assert link_of(at)["what_if_prefix"] == f"[{other}]"
    assert "They diverge at step 2" in words(at)
    refused = start(checkpoint=GPT2, text="The house", explore_tab="What if", what_if_prefix="[99999]")
    assert "what_if_prefix=[99999]" in words(refused)


def test_the_vocabulary_is_searched_on_the_server(start):
    vocabulary = Vocabulary(load_model(GPT2, "cpu"))
    labels = vocabulary.model.tokenizer.target_labels(range(len(vocabulary.tokens)))
    assert labels[vocabulary.found("house")[0]] == " house"
    assert len(vocabulary.found("e")) <= MOST_FOUND
    brute = {n for n, label in enumerate(labels) if "ap" in label.lower()}
    assert set(vocabulary.found("AP")) == brute
    assert len(vocabulary.found("")) == MOST_FOUND < len(labels)
    at = tab(start(checkpoint=GPT2, text="The house"), "What if")
    at.text_input(key="what_if_find").set_value("capital").run()
    assert [option.split(" (id")[0] for option in at.selectbox(key="what_if_token").options][1] == "␣capital"


def test_an_unknown_name_and_a_path_are_said(start, models):
    for name in ("nothing", str(models / GPT2), f"./{GPT2}"):
        at = start(checkpoint=name)
        assert at.warning
        assert at.selectbox(key="checkpoint").value == "reverse"


def test_what_cannot_be_loaded_is_said_once_and_the_text_stays(start, monkeypatch):
    asked = []

    def refuse(name: str, device: str, say: object) -> None:
        asked.append(name)
        raise ModelError("this one cannot be read")

    monkeypatch.setattr(model_list.readers, "load_named", refuse)
    monkeypatch.setattr(model_list, "loaded", type(model_list.loaded)(1e9))
    at = start(checkpoint=BERT, text="mine")
    model_list.refused.clear()
    assert "this one cannot be read" in words(at)
    assert asked == [BERT]
    assert at.session_state["text"] == "mine"


def test_ids_stand_behind_the_labels_of_the_large_map(start):
    def ids(**query: str) -> list[list[str]] | None:
        sent = content(start(**query))
        named = sent["kinds"][query.get("kind", "cross")]["picture"]["ids"]
        return named and [[f"{row}, {column}" for column in named[1]] for row in named[0]]

    trace = decode(load_model(MBART, "cpu"), "The house is small.")
    source, target, written = trace.source_ids or (), trace.target_ids or (), trace.output_ids or ()
    rows = [f"{a} → {b}" for a, b in zip(target, written, strict=True)]
    for kind, of_rows, of_columns in (("cross", rows, source), ("decoder", rows, target), ("encoder", source, source)):
        expected = [[f"query (id {row}), key (id {column})" for column in of_columns] for row in of_rows]
        assert ids(checkpoint=MBART, kind=kind) == expected
    assert ids(text="hello") is None, "the labels of our own models tell tokens apart"
    assert ids(checkpoint=MBART, kind="decoder", hide_answer="true") is None


def test_hiding_the_answer_hides_what_may_stand_at_mask_tokens_and_leaves_the_whole_prompt(start):
    shown, hidden = start(checkpoint=BERT), start(checkpoint=BERT, hide_answer="true")
    assert not hidden.error
    assert "first guess here" in sent(shown) and "first guess here" not in sent(hidden)
    assert [bool(content(at)["kinds"]["encoder"]["picture"]["bars"]) for at in (shown, hidden)] == [True, False]
    prompt = start(checkpoint=GPT2, text="The house", hide_answer="true")
    assert '"isPrompt": true' in sent(prompt) and '"first": "The"' in sent(prompt)


def test_how_a_model_writes_is_said_and_switched_and_in_the_link(start):
    plain = load_model(GPT2, "cpu")
    at = start(checkpoint=GPT2, text="The house", all_controls="true")
    at.toggle(key="chat").set_value(True).run()
    at.toggle(key="generation").set_value(False).run()
    assert not at.error
    assert (link_of(at)["chat"], link_of(at)["generation"]) == ("true", "false")
    switched = plain.with_options(ModelOptions(chat=True, generation=False))
    trace, before = decode(switched, "The house"), decode(plain, "The house")
    assert at.session_state["last_step"] == trace.n_steps - 1 != before.n_steps - 1
    assert sent(at).count('"class": "given"') == trace.n_given and not at.warning
    at = start(checkpoint=GPT2, text="The house")
    assert at.session_state["last_step"] == before.n_steps - 1, "held apart from the other run"


def test_languages_are_chosen_where_a_model_has_them(start):
    at = start(checkpoint=MBART, text="The house is small.", source_language="fr_XX", target_language="de_DE")
    assert not at.error and not at.warning
    assert all(f'"{token}"' in sent(at) for token in ("fr_XX", "de_DE"))
    assert [box.key for box in at.toggle if box.key in ("chat", "generation")] == ["generation"]
    at = start(checkpoint=BERT, chat="true", target_language="de_DE")
    assert not any(box.key in ("generation", "chat") for box in at.toggle), "what a model does not have is not offered"


def test_models_are_held_by_their_bytes(monkeypatch):
    model = load_model(BERT, "cpu")
    size = 4 * model.n_parameters
    held = type(model_list.loaded)(2 * size, getsizeof=model_list.loaded.getsizeof)
    monkeypatch.setattr(model_list, "loaded", held)
    for name in "abac":
        model_list.load_within(name, size, lambda: model)
    assert set(held) == {"a", "c"}
    with pytest.raises(ModelError, match="the page holds"):
        model_list.load_within("d", 3 * size, lambda: model)
    assert set(held) == {"a", "c"}


def test_an_encoder_alone_has_no_answer_to_hide(start):
    trace = decode(load_model(BERT, "cpu"), "The capital of France is [MASK].")
    at = start(checkpoint=BERT, hide_answer="true", step="2")
    assert not at.warning
    assert (at.session_state["step"], at.session_state["last_step"]) == ("2", len(trace.source_tokens) - 1)
