"""The Train page: the form makes the recipe that it shows, refuses what cannot be, and its link says everything."""

import subprocess
from typing import Any
from unittest.mock import Mock

import pytest

from tests.training import tiny
from tests.views.drawn import press, said
from tests.views.widgets import link_of
from transformer_viz import app_folders, server_settings
from transformer_viz.errors import OptionError
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.recipes import recipe_for
from transformer_viz.views.server import jobs, visitors
from transformer_viz.views.server.jobs import Job, Visitor
from transformer_viz.views.train import form


@pytest.fixture
def begun(folder, monkeypatch, tmp_path) -> list[tuple[Recipe, str]]:
    """Nothing is really trained: what would be started is collected."""
    calls: list[tuple[Recipe, str]] = []

    def start(recipe, name, visitor):
        calls.append((recipe, name))
        return Job(folder=tmp_path / ".jobs" / name, recipe=recipe, started=0.0)

    monkeypatch.setattr(jobs, "start", start)
    monkeypatch.setattr(jobs, "jobs", list)
    return calls


ANNA, BORIS = "a" * 43, "b" * 43


def test_the_default_form_is_the_default_recipe(start, begun):
    at = start("train")
    assert "parameters" in " ".join(markdown.value for markdown in at.markdown)
    press(at, "Start training")
    assert begun == [(recipe_for("reverse", "pre-norm"), "reverse-pre-norm-1")]


@pytest.mark.parametrize(
    ("task", "variant"), [("german-toy", "bias-free"), ("reverse", "residual-post-norm"), ("sort", "shared-norm")]
)
def test_another_task_or_variant_brings_its_own_settings(start, begun, task, variant):
    at = start("train")
    at.number_input(key="train_steps").set_value(7).run()
    at.selectbox(key="train_task").set_value(task).run()
    at.selectbox(key="train_variant").set_value(variant).run()
    press(at, "Start training")
    assert begun[0][0] == recipe_for(task, variant)


def test_every_setting_reaches_the_recipe(start, begun):
    at = start("train")
    for name, value in (("n_heads", 2), ("d_model", 24), ("d_ff", 40), ("n_encoder_layers", 1), ("steps", 19), ("seed", 5)):
        at.number_input(key=f"train_{name}").set_value(value)
    for name, value in (("norm", "post"), ("position", "learned"), ("tied_embeddings", "all"), ("optimizer", "sgd")):
        at.selectbox(key=f"train_{name}").set_value(value)
    at.toggle(key="train_attention_bias").set_value(False)
    at.run()
    press(at, "Start training")
    recipe = begun[0][0]
    assert recipe.model == {
        **{"n_heads": 2, "d_model": 24, "d_ff": 40, "n_encoder_layers": 1},
        **{"norm": "post", "position": "learned", "tied_embeddings": "all", "attention_bias": False},
    }
    assert (recipe.steps, recipe.seed, recipe.optimizer) == (19, 5, "sgd")


@pytest.mark.parametrize("preset", form.PRESETS, ids=lambda preset: preset.title)
def test_a_preset_trains_on_one_click_and_leaves_the_form_as_it_was(start, begun, preset):
    at = start("train")
    at.number_input(key="train_seed").set_value(7).run()
    press(at, preset.title)
    expected = recipe_for(preset.task, preset.variant, settings=preset.settings, model=preset.model)
    assert begun == [(expected, f"{preset.task}-{preset.variant}-1")]
    assert at.number_input(key="train_seed").value == 7


def test_a_preset_that_cannot_start_says_why_beside_it(start, begun, monkeypatch):
    def refuse(*_):
        raise OptionError("another training is at work")

    monkeypatch.setattr(jobs, "start", refuse)
    at = start("train")
    at.button(key="preset-numbers").click().run()
    assert [error.value for error in at.error] == ["another training is at work"]


def test_heads_that_do_not_divide_are_said_and_nothing_is_lost(start, begun):
    at = start("train")
    at.number_input(key="train_n_heads").set_value(3).run()
    assert any("does not divide" in error.value for error in at.expander[0].error), "beside the settings that are meant"
    assert at.number_input(key="train_n_heads").value == 3
    assert not any(button.label == "Start training" for button in at.button)


def test_a_model_that_is_too_large_for_a_page_is_refused(start, folder):
    at = start("train", train_d_model="1024", train_d_ff="4096", train_n_encoder_layers="12", train_n_decoder_layers="12")
    press(at, "Start training")
    assert "at most 60,000,000" in said(at)
    assert jobs.jobs() == []


# Whose it is


@pytest.fixture
def annas(folder, monkeypatch, tmp_path) -> Job:
    """A training of Anna's; what would be launched is not, and its state is what the test says."""
    monkeypatch.setattr(app_folders, "trained", lambda: tmp_path / "trained")
    monkeypatch.setattr(subprocess, "Popen", Mock())
    job = jobs.start(recipe_for("reverse"), "annas", Visitor(ANNA))
    tiny.report(job.folder)
    monkeypatch.setattr(Job, "state", property(lambda self: "running"))
    return job


def labels(at: Any) -> set[str]:
    """Of the buttons that do something."""
    possible = {"Pause", "Stop and keep", "Go on", "Discard annas", "Open in Explore", "Start training"}
    return {button.label for button in at.button if not button.disabled} & possible


@pytest.mark.parametrize("state", ["starting", "running", "paused", "finished", "failed"])
def test_another_browser_sees_the_progress_and_no_buttons(start, browser, annas, monkeypatch, state):
    """By the link, too, that names the training; and the starter sees it as before after a reload."""
    monkeypatch.setattr(Job, "state", property(lambda self: state))
    wanted = {"starting": {"Pause", "Stop and keep"}, "running": {"Pause", "Stop and keep"}, "finished": {"Discard annas"}}
    wanted, everybody = wanted.get(state, {"Go on", "Discard annas"}), {"Open in Explore"} if state == "finished" else set()
    for token, buttons in ((ANNA, wanted), (BORIS, set()), (None, set()), (ANNA, wanted)):
        browser(token)
        at = start("train", train_job="annas")
        assert "40.0 % of held-out texts right" in at.get("progress")[0].proto.text
        assert labels(at) == {"Start training", *buttons, *everybody}
        assert ("Started in another browser" in said(at)) == (token != ANNA)


def test_what_is_discarded_can_be_put_back_by_its_starter(start, browser, annas, monkeypatch):
    monkeypatch.setattr(Job, "state", property(lambda self: "finished"))
    browser(ANNA)
    at = start("train", train_job="annas")
    press(at, "Discard annas")
    at = start("train")
    assert jobs.jobs() == []
    assert "Trash: 1 discarded" in [fold.label for fold in at.expander]
    browser(BORIS)
    assert not [fold for fold in start("train").expander if fold.label.startswith("Trash")]
    browser(ANNA)
    at = start("train")
    press(at, "Put back")
    assert [job.name for job in jobs.jobs()] == ["annas"]


def test_a_click_on_stop_is_answered_at_once(start, browser, annas):
    """The process hears it after its step, which may take a while; the page says so from the click on."""
    browser(ANNA)
    at = start("train")
    press(at, "Stop and keep")
    assert "stopping" in " ".join(markdown.value for markdown in at.markdown)
    assert labels(at) == {"Start training"}


def test_the_owner_sees_whose_it_is_and_may_stop_it(start, browser, annas, monkeypatch):
    browser(BORIS)
    monkeypatch.setattr(visitors, "is_owner", lambda *_: True)
    at = start("train")
    assert "as the owner of this server" in said(at)
    press(at, "Stop and keep")
    assert (annas.folder / "request").read_text() == "stop"


def test_a_button_that_is_pressed_is_asked_again_whose_it_is(start, browser, annas):
    """A page that still shows its buttons when the browser is another one, as a forged message would."""
    browser(ANNA)
    at = start("train")
    stop = next(button for button in at.button if button.label == "Stop and keep")
    browser(BORIS)
    stop.click().run()
    assert "annas was started in another browser" in said(at)
    assert not (annas.folder / "request").exists()


def test_a_browser_without_cookies_manages_what_it_started_while_its_page_is_open(start, browser, annas):
    """Nothing of it is in the link, and another one without cookies is another one."""
    (annas.folder / "job.json").unlink()
    browser(None)
    first, second = start("train"), start("train")
    press(first, "Start training")
    (job,) = jobs.jobs()
    assert labels(first) >= {"Pause", "Stop and keep"}
    assert labels(second.run()) == {"Start training"}
    token = first.session_state["visitor_token"]
    assert Visitor(token).mark == job.mark
    assert token not in str(link_of(first))


def test_where_training_is_closed_the_page_says_why(start, browser, annas, monkeypatch):
    monkeypatch.setenv(server_settings.NO_TRAINING_VARIABLE, "1")
    monkeypatch.setattr(Job, "state", property(lambda self: "paused"))
    browser(ANNA)
    at = start("train")
    assert "--no-training" in said(at)
    assert "Discard annas" in labels(at) and "Start training" not in labels(at)
    assert at.session_state["learned"] and "How it learned" in [fold.label for fold in at.expander]
    assert not at.number_input, "the form is hidden"
