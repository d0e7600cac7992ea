"""The tab On trial: its numbers are those of tv.judge_attention and the like, its halves are apart, nothing is made unasked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.attribution import planted
from tests.needs import needs
from tests.tiny_models import BERT, GPT2
from tests.views.drawn import charts, said, table_of
from tests.views.viewer import enter
from tests.views.widgets import link_of
from transformer_viz.addresses import HeadAddress
from transformer_viz.attribution.result.verdict import left_out_words, verdict_words
from transformer_viz.checkpoints import Checkpoint, save_checkpoint
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.views.explore import on_trial
from transformer_viz.views.explore.on_trial import QUESTIONS

HERE = {"text": planted.TEXT, "explore_tab": "Heads", "heads_part": "On trial", "layer": "1", "head": "1"}


@pytest.fixture(scope="module")
def saved_copiers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one of these a single head writes everything; of the other two heads do, each of which is enough."""
    parent = tmp_path_factory.mktemp("planted")
    for name, heads in (("one", (0,)), ("two", (0, 1))):
        model = planted.copying(*heads)
        save_checkpoint(parent / name, model.network, model.task, variant="pre-norm", recipe={}, metrics={})
    return parent


@pytest.fixture
def copiers(folder: Path, saved_copiers: Path, only: Callable[[Path], Path]) -> Callable[[str], Checkpoint]:
    """The app finds these alone; a function loads one by its name."""
    only(saved_copiers)
    return lambda name: tv.load_checkpoint(str(saved_copiers / name), "cpu")


def test_the_table_is_the_verdict_by_word_and_by_position(start, copiers):
    at = start(**HERE, checkpoint="one", verdict="true")
    model = copiers("one")
    trace = tv.decode(model, planted.TEXT)
    table = table_of(at, "map")
    for mode in ("word", "position"):
        found = tv.judge_attention(model, trace, mode=mode)
        tops = [*(each.top.value for each in found.maps), found.chance.value]
        np.testing.assert_array_equal(table[f"at the cause, {mode}"], tops)
        assert found.n_judged == 8
        np.testing.assert_array_equal(table[f"ρ, {mode}"], [*(each.rho.value for each in found.maps), 0.0])
        assert f"by {mode}, {verdict_words(found.at('L1 H1'), found)}" in said(at)
        assert f"by {mode}, 8 are judged and {left_out_words(found)}" in said(at)
    names = ["L1 H1", "L1 H2", "L1 H3", "L1 H4", "L1 mean", "L1 max", "value-weighted norm L1 H1"]
    assert list(table["map"])[:7] == names
    assert {"gradient × attention", "rollout", "ALTI+", "value-weighted norm of all heads L1", "by chance"} <= {*table["map"]}
    assert list(at.session_state["verdict_table"]["selection"]["rows"]) == [0]
    assert "A single run has no interval" in said(at)


@pytest.mark.parametrize(("name", "stay"), [("one", "0 %"), ("two", "100 %")])
def test_the_two_halves_are_apart(start, copiers, name, stay):
    """Both heads point at the cause; only where there is no second one is the first needed."""
    at = start(**HERE, checkpoint=name, verdict="true")
    points = "L1 H1, by word, points where the cause is in 100 % of 8 judged steps (12 % by chance); by position, points"
    assert points in said(at)
    assert "Whether it is needed is a separate question." in said(at) and "without this head" not in said(at)
    needed_of = {"question": "Is it needed?", "knock_out": "true"}
    at = start(**HERE, checkpoint=name, **needed_of, trial_samples="20")
    # Wilson's of 0 and of 20 of 20: 1.96² / (20 + 1.96²) is 0.161.
    wilson = {"0 %": "0 % to 16 %", "100 %": "84 % to 100 %"}[stay]
    needed = f"without this head {stay} of 20 right answers stay (95 % interval {wilson})"
    assert f"L1 H1: {needed}. Whether it points at the cause is a separate question." in said(at)
    assert "judged steps" not in said(at)
    at = start(**HERE, checkpoint=name, **needed_of, trial_texts="abba\n\nhgfe\n")
    assert f"without this head {stay} of 2 right answers stay" in said(at)
    model = copiers(name)
    found = tv.knock_out(model, [tv.decode(model, text) for text in ("abba", "hgfe")], heads=[HeadAddress("cross", 0, 0)])
    assert f"{found.heads[0].log_p.value:+.3f} nats".replace("-", "−").replace("−0.000", "0.000") in said(at)
    # The first half is there as soon as somebody has asked for it.
    at.segmented_control(key="question").set_value(QUESTIONS[0]).run()
    at.toggle(key="verdict").set_value(True).run()
    assert points in said(at) and f"; without this head {stay} of 2 right answers stay" in said(at)


def test_curves_have_their_numbers_in_words(start, copiers):
    at = start(**HERE, checkpoint="one", question="Is its order faithful?", curves="true")
    model = copiers("one")
    found = tv.faithfulness(model, tv.decode(model, planted.TEXT), ["L1 H1", "L1 mean", "gradient", "rollout", "alti"])
    own, random = found[0], found[-1]
    assert (
        f"Without the token that L1 H1 looks at most, {percent_words(own.comprehensiveness[0].value)}" in charts(at)[-1].words
    )
    assert f"with a random one alone {percent_words(random.sufficiency[0].value)}" in said(at)
    table = at.dataframe[0].value
    assert table["lost without them"].tolist() == [mean.value for curve in found for mean in curve.comprehensiveness]


def test_nothing_is_computed_or_drawn_unless_asked(start, own_folder, monkeypatch):
    computed: list[str] = []

    def counted(words: str, *given: Any, **named: Any) -> Any:
        computed.append(words)
        return COMPUTED(words, *given, **named)

    COMPUTED = on_trial.compute
    monkeypatch.setattr(on_trial, "compute", counted)
    toggles = ("verdict", "knock_out", "curves")
    at = start(text="hello", **dict.fromkeys(toggles, "true"))
    assert not computed and not [each for each in at.segmented_control if each.key == "question"]
    for toggle, question in zip(toggles, QUESTIONS, strict=True):
        at = start(text="hello", explore_tab="Heads", heads_part="On trial", question=question)
        assert not at.toggle(key=toggle).value
    assert not computed
    at = start(text="hello", explore_tab="Heads", heads_part="On trial")
    at.toggle(key="verdict").set_value(True).run()
    assert len(computed) == 2 and link_of(at)["verdict"] == "true"
    # Another run has not been asked for.
    enter(at, "abc")
    assert len(computed) == 2 and not at.toggle(key="verdict").value and "verdict" not in link_of(at)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"kind": "encoder"}, "No single step depends on one row"),
        ({"head": "mean", "question": "Is it needed?"}, "Choose a head above"),
        ({"question": "Could it look elsewhere?"}, "question=Could it look elsewhere?"),
        ({"text": "a", "verdict": "true"}, "has nothing to point at: "),
        ({"text": "a", "question": "Is its order faithful?", "curves": "true"}, "No step can be judged"),
        ({"question": "Is it needed?", "trial_texts": "x\n" * 201}, "201 lines are too many; at most 200 texts are possible"),
        ({"question": "Is it needed?", "trial_texts": "héllo", "knock_out": "true"}, "é"),
    ],
)
def test_what_cannot_be_is_said(start, query, why):
    at = start(**{**HERE, "text": "hello", **query})
    assert why in said(at)
    assert not at.dataframe


@needs("transformers")
@pytest.mark.usefixtures("models")
def test_other_models_are_judged_or_refused_by_name(start):
    at = start(**{**HERE, "checkpoint": BERT, "text": "The house"})
    assert f"{BERT} is an encoder alone: it writes nothing" in said(at)
    at = start(**{**HERE, "checkpoint": GPT2, "text": "The house"}, knock_out="true", question="Is it needed?")
    model = tv.load_model(GPT2, "cpu")
    assert model.tokenizer.unknown_id is None
    found = tv.knock_out(model, [tv.decode(model, "The house")], heads=[HeadAddress("decoder", 0, 0)])
    assert f"without this head the answer {'stays' if found.heads[0].exact.value else 'does not stay'}" in said(at)
    assert "1 text, what was written: " in said(at)
    at.segmented_control(key="question").set_value(QUESTIONS[0]).run()
    at.toggle(key="verdict").set_value(True).run()
    assert f"{GPT2} has no unknown token" in said(at)
    table = table_of(at, "map")
    assert "at the cause, word" not in table.columns
    found = tv.judge_attention(model, tv.decode(model, "The house"), mode="position")
    np.testing.assert_array_equal(table["at the cause, position"][:4], [each.top.value for each in found.maps[:4]])
