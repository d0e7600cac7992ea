"""The gallery of classic mistakes: what is wrong, what it does to this batch, and the line that puts it right."""

import math

import streamlit as st

from transformer_viz.analysis.forbidden import forbidden_weight
from transformer_viz.analysis.loss import losses
from transformer_viz.analysis.sentences import percent_words
from transformer_viz.mask_checks.effect import SAMPLES
from transformer_viz.model.mistakes import MISTAKES, Mistake
from transformer_viz.terms import KIND_TITLES
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import code
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.masks import batch_runs
from transformer_viz.views.masks.over_many import OverMany
from transformer_viz.views.masks.setup import NO_MISTAKE, Setup
from transformer_viz.views.snippets import masks as programs
from transformer_viz.views.state import display_options
from transformer_viz.vocabulary import PAD

TITLE, ORDER = "Mistakes", 3


def show(setup: Setup) -> None:
    """Cards, two a row."""
    if setup.model.task is None:
        st.info(
            "These mistakes are made in the model that comes with this app: choose one of its checkpoints above. "
            f"Masks of {literal(setup.model.name)} are changed by hand under *Change and run again*.",
            icon=":material/bug_report:",
        )
        return
    right = batch_runs.decoded(setup.model, setup.typed), batch_runs.forced(setup.model, setup.typed)
    many = OverMany("gallery", setup, {name: ((), name) for name in MISTAKES})
    with st.container(horizontal=True, vertical_alignment="center"):
        many.controls(f"… and over {SAMPLES} strings", "lab-gallery-many")
        st.caption("Each mistake is really made by this model, on this batch, now; the numbers are from those runs.")
    cards = list(MISTAKES.values())
    for start in range(0, len(cards), 2):
        for column, mistake in zip(st.columns(2), cards[start : start + 2], strict=False):
            with column, st.container(border=True, key=f"mistake-{mistake.name}"):
                _card(setup, mistake, many, *right)
    code.show(programs.mistakes(setup.batch, with_effect=many.is_asked))
    many.go_on()


def _card(setup: Setup, mistake: Mistake, many: OverMany, decoded: list[Trace], forced: list[Trace]) -> None:
    is_on = setup.mistake == mistake.name
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{mistake.title}**")
        st.button(
            "Take it back" if is_on else "Make this mistake",
            key=f"make-{mistake.name}",
            type="primary" if is_on else "secondary",
            on_click=_make,
            args=(NO_MISTAKE if is_on else mistake.name,),
        )
    st.markdown(mistake.wrong)
    if mistake.needs_padding and not any(PAD in trace.source_tokens for trace in forced):
        st.markdown("*Nothing is padded here, so nothing happens. Add a longer line above.*")
    else:
        st.markdown(_effect(setup, mistake, decoded, forced))
    many.result(mistake.name)
    st.code(f"# wrong\n{mistake.faulty_code}\n# right\n{mistake.fixed_code}", language="python", wrap_lines=True)


def _effect(setup: Setup, mistake: Mistake, decoded: list[Trace], forced: list[Trace]) -> str:
    """Here and now, with numbers."""
    wrong = batch_runs.decoded(setup.model, setup.typed, (), mistake.name)
    wrong_forced = batch_runs.forced(setup.model, setup.typed, (), mistake.name)
    changed = sum(a.output_tokens != b.output_tokens for a, b in zip(decoded, wrong, strict=True))
    before, after = decoded[setup.sentence], wrong[setup.sentence]
    words = [f"**Here:** {changed} of {len(decoded)} sentences come out differently."]
    if before.output_tokens != after.output_tokens:
        words.append(f"{_text(before)} → {_text(after)}{display_options.answer_of(after)}.")
    elif changed == 0:
        words.append("The output does not show it; the certificate does.")
    looked = forbidden_weight(forced, wrong_forced)
    if looked is not None and looked[1] > 0:
        words.append(f"Forbidden keys get {percent_words(looked[1], 1)} of the weight in {KIND_TITLES[looked[0]]}.")
    words.append(f"Loss on the targets: {_number(losses(forced).loss)} → {_number(losses(wrong_forced).loss)}.")
    return " ".join(words)


def _text(trace: Trace, most: int = 24) -> str:
    text = trace.text if len(trace.text) <= most else trace.text[: most - 1] + "…"
    return of_run(text)


def _number(loss: float) -> str:
    return "NaN" if math.isnan(loss) else f"{loss:.2g}"


def _make(name: str) -> None:
    st.session_state.mistake = name
