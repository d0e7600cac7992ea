"""The effect of the changes over many strings: a toggle that starts and stops the decoding, and the result so far.

It is a long job for each change. What is decoded stays: after a click elsewhere, or after Stop, it goes on where it was.
"""

from collections.abc import Hashable, Mapping
from functools import partial

import streamlit as st

from transformer_viz.errors import TransformerVizError
from transformer_viz.language import say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.mask_checks.effect import COUNTED, DecodedTexts, EffectInProgress, fresh_strings, texts_from_person
from transformer_viz.numbers_in_words import count_words, duration_words, percent_words
from transformer_viz.views.cache import long_jobs
from transformer_viz.views.cache.job_queue import Job
from transformer_viz.views.cache.model_list import identity
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.masks.setup import Setup
from transformer_viz.views.state import link

MOST_WRITTEN = 20
"""Tokens for each of many texts: some models seldom end by themselves."""
_BEGUN = "begun"
"""In the session: what each toggle was switched on for last."""

Change = tuple[tuple[str, ...], str | None]
"""Edits, and a mistake."""


class OverMany:
    """One change or several, and the places on the page where it is said what they do.

    Args:
        name: the toggle's key.
        setup: of the page.
        changes: by the names by which `result` asks for them. Nothing is decoded before `go_on`.
    """

    def __init__(self, name: str, setup: Setup, changes: Mapping[str, Change]) -> None:
        self._name, self._setup, self._changes, self._of = name, setup, changes, setup.made_of[name]
        self._places, self._runs, self._error = {}, {}, ""
        begun = st.session_state.setdefault(_BEGUN, {})
        is_on = self._of is not None and link.is_on(name) and link.asked(name, self._of)
        if is_on:
            begun[name] = self._of
        # Switched off again, what there is of it stays.
        self.is_asked = self._of is not None and begun.get(name) == self._of
        try:
            for key, change in changes.items() if self.is_asked else ():
                self._runs[key] = _effect(identity(setup.model), setup.many, *change, setup.model)
        except TransformerVizError as error:
            self._error, self.is_asked = str(error), False
        self._is_stopped = self.is_asked and not is_on and not all(run.is_done for run in self._runs.values())

    def controls(self, words: str) -> None:
        """Draws the toggle, which says `words`, and how far it is."""
        if self._error:
            st.error(literal(self._error), icon=":material/keyboard:")
        with st.container(horizontal=True, vertical_alignment="center", key=f"{self._name}-row"):
            link.asking_toggle(words, key=self._name, of=self._of)
            self._progress = st.container()
        if self._is_stopped:
            runs = self._runs.values()
            decoded, samples = sum(run.decoded for run in runs), sum(run.samples for run in runs)
            self._progress.progress(
                decoded / samples, say("{setup} · stopped", setup=_share_words(self._setup, decoded, samples))
            )

    def result(self, key: str) -> None:
        """Draws what the change of this name does, here, as far as that is known."""
        if self.is_asked:
            self._places[key] = st.empty()
            self._draw_result(key)

    def go_on(self) -> None:
        """Decodes what is left, unless somebody stopped it; the last thing on a page, which ends here until it is done."""
        setup = self._setup
        for key, run in {} if self._is_stopped else self._runs.items():
            if not run.is_done:
                of = (self._name, identity(setup.model), setup.many, self._changes[key])
                with self._progress:
                    long_jobs.wait_for(of, say("Decoding"), partial(_decode, run, setup))
                self._draw_result(key)

    def _draw_result(self, key: str) -> None:
        run = self._runs[key]
        self._places[key].markdown(_words(run) if run.found or self._is_stopped else "")


def _decode(run: EffectInProgress, setup: Setup, job: Job) -> None:
    """In the queue's thread: a few strings at a time, until all are decoded."""
    while not run.is_done:
        words = _share_words(setup, run.decoded, run.samples)
        if run.decoded:
            left = run.seconds / run.decoded * (run.samples - run.decoded)
            words = say("{done} · about {time} left", done=words, time=duration_words(max(1.0, left)))
        long_jobs.report_share(job, run.decoded / run.samples, words)
        run.step(setup.model)


def _share_words(setup: Setup, decoded: int, samples: int) -> str:
    """`100 of 500 strings`."""
    strings = count_words(samples, "text" if setup.model.task is None else "string")
    return say("{n:,} of {strings}", n=decoded, strings=strings)


def _words(run: EffectInProgress) -> str:
    """Says what is known of the effect so far, and of how many strings."""
    if (effect := run.found) is None:
        return say("Nothing is known before the first {counted} strings are decoded.", counted=COUNTED)
    strings = (
        f"{run.samples}"
        if run.is_done
        else say("the first {samples} of {samples2}", samples=effect.samples, samples2=run.samples)
    )
    if effect.exact_before is None or effect.exact_after is None:
        return say(
            "Of {strings} texts, **{changed}** come out differently.", strings=strings, changed=percent_words(effect.changed, 1)
        )
    return say(
        "Over {strings} fresh strings of all lengths, in padded batches: exact match "
        "**{exact_before:.3f} → {exact_after:.3f}**; {changed} of the outputs changed.",
        strings=strings,
        exact_before=effect.exact_before,
        exact_after=effect.exact_after,
        changed=percent_words(effect.changed, 1),
    )


@st.cache_resource(max_entries=128, show_spinner=False)
def _effect(
    name: Hashable, texts: tuple[str, ...] | None, edits: tuple[str, ...], mistake: str | None, _model: LoadedModel
) -> EffectInProgress:
    """The effect of a change over fresh strings of the task or a person's texts, as far as somebody has decoded them."""
    return EffectInProgress(_model, _strings(name, texts, _model), edits=edits, mistake=mistake)


@st.cache_resource(max_entries=6, show_spinner=False)
def _strings(name: Hashable, texts: tuple[str, ...] | None, _model: LoadedModel) -> DecodedTexts:
    return (
        fresh_strings(_model)
        if texts is None
        else texts_from_person(_model, texts, min(MOST_WRITTEN, _model.default_max_length))
    )
