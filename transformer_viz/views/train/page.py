"""The page Train: start a training, watch its loss and attention, and replay how a trained model learned.

The training runs in a process of its own.
"""

from typing import Any

import pandas as pd
import streamlit as st

from transformer_viz import app_folders, figures, server_settings
from transformer_viz.errors import TransformerVizError
from transformer_viz.language import later, say
from transformer_viz.numbers_in_words import bytes_words, count_words, duration_words
from transformer_viz.training import estimate
from transformer_viz.training.recipe import Recipe
from transformer_viz.views.cache import model_list
from transformer_viz.views.components import chart, code, lesson_card
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.server import jobs
from transformer_viz.views.state import display_options, link, visit_language
from transformer_viz.views.train import form, how_it_learned, model_drawing, progress

TITLE, ICON, ORDER = later("Train"), ":material/model_training:", 4
HAS_VIEWER = True
"""True for a page with a viewer, which writes its part of the address itself."""

_EVERY_SECONDS, _LONGEST_NAME, _LONGEST_PROBE = 2.0, 100, 200
_EXAMPLE = "numbers"
_estimate = st.cache_resource(max_entries=64, show_spinner=False)(estimate.estimate)


def show() -> None:
    """Draws the page."""
    state = st.session_state
    if state.pop("train_open", False):
        link.go_to("Explore")
    if lesson_card.at_start("moment") is not None:
        # A lesson speaks of this training alone: nobody's own stands in its place.
        how_it_learned.show(is_open=True)
        return
    if server_settings.trains():
        with st.container(key="train-columns"):
            left, right = st.columns([2, 3], gap="large")
        with left:
            display_options.glossary_popover("train")
            # Buttons that train at once; nothing is changed in the form.
            st.caption(say("Press one, and it trains at once:"))
            with st.container(gap="xsmall"):
                for preset in form.PRESETS:
                    st.button(
                        say(preset.title),
                        f"preset-{preset.task}",
                        say(preset.help),
                        _begin,
                        args=(preset.recipe, None),
                        icon=":material/bolt:",
                        width="stretch",
                    )
            if said := state.pop("preset_refused", None):
                st.error(literal(said), icon=":material/error:")
            with link.expander(say("A training of your own"), key="form", icon=":material/tune:"):
                recipe = form.show()
                if recipe is not None:
                    _start_box(recipe)
                model_drawing.show(recipe)
        with right:
            _show_job()
    else:
        try:
            jobs.check_open()
        except TransformerVizError as error:
            st.info(literal(str(error)), icon=":material/lock:")
        display_options.glossary_popover("train")
        _show_job()
    how_it_learned.show(is_open=not server_settings.trains())


def _show_job() -> None:
    """Draws the chosen training and the trash; before the first training, an example of what will be seen here."""
    # The chosen training, or else the newest.
    known = {job.name: job for job in jobs.jobs()}
    if names := [*known]:
        chosen = (
            link.selectbox(say("Training"), names, key="train_job", said=str)
            if len(names) > 1
            else link.option("train_job", names, said=str)
        )
        job = known[chosen]
        words = say("type your own; empty: an example of the task")
        link.text_input(say("A string to watch"), key="train_probe", most=_LONGEST_PROBE, placeholder=words)
        _live(job.name)
        _show_command(job.recipe, job.name, "code_of_job")
    elif server_settings.trains():
        st.markdown(
            say(
                "**What will appear here.** Nothing has been trained on this page yet. Press one of the three "
                "buttons, or set up a training of your own. While it runs, you see the loss, the share of right "
                "answers on texts that it is not trained on, and how one head's attention forms on a text of "
                "yours. From the first step on you can choose the model on every page."
            )
        )
        if rows := _shipped_history():
            words = say(
                "How the shipped checkpoint {example} learned: its loss, and the share of texts that came out right",
                example=_EXAMPLE,
            )
            chart.draw(figures.training, rows, int(rows[-1]["step"]), key="training-example", words=words)
            st.caption(say("An example: how the shipped checkpoint `{example}` learned.", example=_EXAMPLE))
    progress.show_trash()


@st.fragment(run_every=_EVERY_SECONDS)
@visit_language.spoken
def _live(name: str) -> None:
    job = next((job for job in jobs.jobs() if job.name == name), None)
    if job is None:
        st.rerun()  # it was discarded, here or in another browser
    progress.show(job)
    # Outside this fragment, the page and the picker of checkpoints are drawn anew once for each change.
    before = st.session_state.get("train_seen")
    st.session_state.train_seen = (name, job.state)
    if before is not None and before != (name, job.state):
        model_list.entries.clear()
        st.rerun()
    if st.session_state.get("train_open"):
        st.rerun()


def _start_box(recipe: Recipe) -> None:
    try:
        with st.spinner(say("Estimating …")):
            needed = _estimate(recipe)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    st.markdown(
        say(
            "**{parameters}**, about {memory} of memory, roughly {time} on one core.",
            parameters=count_words(needed.parameters, "parameter"),
            memory=bytes_words(needed.memory),
            time=duration_words(needed.seconds),
        )
    )
    if needed.seconds > jobs.MOST_SECONDS:
        st.caption(
            say(
                "This page ends a training after {most_seconds} minutes and keeps what it has learned by then.",
                most_seconds=jobs.MOST_SECONDS // 60,
            )
        )
    state = st.session_state
    link.text_input(say("Name of the checkpoint"), _free_name(recipe), key="train_name", most=_LONGEST_NAME)
    begin: Any = {"on_click": _begin, "args": (recipe, "train_name")}
    st.button(say("Start training"), type="primary", icon=":material/play_arrow:", **begin)
    if said := state.pop("train_refused", None):
        st.error(literal(said), icon=":material/error:")
    _show_command(recipe, state.train_name.strip(), "code")


def _show_command(recipe: Recipe, name: str, fold: str) -> None:
    """Draws the command that does this training in a terminal, without this page's limits."""
    how = {
        "folder": f"{app_folders.trained_as_typed()}/{name}",
        "snapshots": jobs.SNAPSHOTS,
        "samples": jobs.SAMPLES,
    }
    code.show_command(form.command(recipe.task, recipe.variant, form.changes(recipe), **how), fold)


def _begin(recipe: Recipe, name: str | None) -> None:
    """Starts a training, which the page then shows, or keeps why it cannot be started.

    Args:
        recipe: of the training.
        name: the session's key of its name; None where it is to be free.
    """
    state = st.session_state
    typed = _free_name(recipe) if name is None else state[name].strip()
    try:
        job = jobs.start(recipe, typed, progress.visitor())
    except TransformerVizError as error:
        state["preset_refused" if name is None else "train_refused"] = str(error)
        return
    state.train_job = job.name
    state.pop("train_seen", None)
    if name is not None:
        link.reset(name)


@st.cache_resource(show_spinner=False)
def _shipped_history() -> list[dict[str, Any]]:
    """The rows of the example's history; empty where the checkpoint was not shipped."""
    path = app_folders.ROOT / "checkpoints" / _EXAMPLE / "history.csv"
    frame = pd.read_csv(path) if path.is_file() else pd.DataFrame()
    return [{name: value for name, value in row.items() if pd.notna(value)} for row in frame.to_dict("records")]


def _free_name(recipe: Recipe) -> str:
    taken = {job.name for job in jobs.jobs()} | {entry.name for entry in model_list.entries()}
    base = f"{recipe.task}-{recipe.variant}"
    return next(name for n in range(1, 1000) if (name := f"{base}-{n}") not in taken)
