"""The leak certificate of the model, with the edits and the mistake that are set on the page."""

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from transformer_viz import language
from transformer_viz.language import later, say, sentences
from transformer_viz.mask_checks.check_masks import check_masks
from transformer_viz.mask_checks.result import RULES
from transformer_viz.views.cache.computing import compute
from transformer_viz.views.components import code
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.masks.setup import Setup
from transformer_viz.views.state import link

TITLE, ORDER = later("Certificate"), 4
_CHECKED = (6_000, 100_000)
"""Tokens that a check reads, roughly: of texts, and of a task's pairs."""


def _subject(setup: Setup) -> str:
    """The subject of the certificate."""
    name, of_change = setup.model.name, setup.change_words()
    subject = say("model {name}", name=name) if setup.model.task is None else say("checkpoint {name}", name=name)
    return say("{subject} with {change}", subject=subject, change=of_change) if of_change else subject


def show(setup: Setup) -> None:
    """Draws a toggle that asks for the check and, while it is on, the verdict."""
    model = setup.model
    # What is replaced, of the sides that this model has, and in which texts.
    what, cut = say("all padding"), ""
    if model.network.kind.writes:
        what = say("later tokens and all padding")
        if model.task is not None:
            what = say("later target tokens and all padding, one position after the other")
        cut = say("The end is cut off too, since the length of the text must not matter.")
    tried = "" if model.task is not None else say("The texts above are used, 16 tokens of each.")
    replaced = say("Every token that a query must not see is replaced at random: {what}.", what=what)
    leaks = say("If attention or a logit changes, a mask leaks.")
    st.markdown(sentences(filter(None, [replaced, cut, leaks, tried])))
    if setup.is_changed:
        st.markdown(say("The model is checked with {change_words}.", change_words=setup.change_words()))
    changed: Any = {"texts": setup.texts, "edits": setup.edits, "mistake": setup.mistake}
    if link.asking_toggle(say("Check this model"), key="certificate", of=setup.made_of["certificate"]):
        cost = float(_CHECKED[model.task is not None] * model.n_parameters)
        report = compute(say("Replacing what must not be seen"), cost, check_masks, model, **changed)
        # What was found is kept for all visitors, whatever their language.
        report = replace(report, subject=_subject(setup)) if language.current() != language.ENGLISH else report
        # The verdict, the mistake that it looks like, and the largest change by rule.
        box, icon = (st.success, ":material/verified:") if report.sound else (st.error, ":material/gpp_bad:")
        box(literal(report.headline), icon=icon)
        for mistake in report.mistakes:
            st.markdown(say("This looks like **{title}**. Put right:", title=say(mistake.title)))
            st.code(mistake.fixed_code, language="python", wrap_lines=True)
        worst = {finding.rule: str(finding) for finding in report.findings}
        rows = [
            {
                say("rule"): say(RULES[rule]),
                say("largest change"): say("not finite") if math.isinf(size) else f"{size:.2g}",
                say("verdict"): say("broken") if rule in worst else say("holds"),
                say("worst case"): worst.get(rule, ""),
            }
            for rule, size in report.checked.items()
        ]
        st.table(pd.DataFrame(rows).set_index(say("rule")))
        if report.precision is not None:
            st.caption(literal(str(report.precision)))
        for note in report.notes:
            st.markdown(literal(note))
    code.show(Call("print({})", Call(check_masks, model, **changed)))
