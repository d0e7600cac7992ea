"""The gallery of classic mistakes: what is wrong, what it does to this batch, and the line that puts it right."""

from dataclasses import replace

import streamlit as st

from transformer_viz import figures
from transformer_viz.addresses import map_address
from transformer_viz.analysis.loss import losses
from transformer_viz.analysis.mask_parts import forbidden_weight, most_forbidden
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.language import later, say, sentences
from transformer_viz.mask_checks.effect import SAMPLES
from transformer_viz.model.mistakes import MISTAKES, Mistake
from transformer_viz.numbers_in_words import percent_words, rounded_words
from transformer_viz.terms import head_label, kind_words
from transformer_viz.text_display import shorten
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import code, style
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.masks import picture
from transformer_viz.views.masks.over_many import OverMany
from transformer_viz.views.masks.setup import NO_MISTAKE, Setup
from transformer_viz.views.state import display_options, focus, link
from transformer_viz.vocabulary import PAD

TITLE, ORDER = later("Mistakes"), 3
_LONGEST_TEXT = 24
_SEEN = "mistake_seen"
"""In the session: the mistake that was shown last, and of what."""
_PROGRAM = """changes = {{}}
for name in tv.MISTAKES:
    wrong = tv.decode_batch({0}, {1}, mistake=name)
    wrong_read = tv.decode_forced({0}, {1}, {4}, mistake=name)
    changes[name] = {{
        "changed": sum(a.output_tokens != b.output_tokens for a, b in zip({2}, wrong)),
        "forbidden": tv.analysis.forbidden_weight({3}, wrong_read),
        "loss": (tv.analysis.losses({3}).loss, tv.analysis.losses(wrong_read).loss),
    }}
    print(tv.MISTAKES[name].title, changes[name])"""
_WITH_EFFECT = """
    print("over 500 strings:", tv.measure_effect({0}, mistake=name))"""


def show(setup: Setup) -> None:
    """Draws the mistake that is made now beside the right mask, and cards, two a row."""
    if setup.model.task is None:
        st.info(
            say(
                "These mistakes are made in the model that comes with this app: choose one of its checkpoints "
                "above. Masks of {name} are changed by hand under *Change and run again*.",
                name=literal(setup.model.name),
            ),
            icon=":material/bug_report:",
        )
        return
    recipe = setup.model.recipe if isinstance(setup.model, Checkpoint) else {}
    learned = MISTAKES.get(recipe.get("mistake") or "")
    decoded = setup.sound().decoded()
    if learned or setup.mistake:
        setup = _answered(setup)
    right = decoded, setup.sound().forced()
    _seen(setup, learned)
    many = OverMany("gallery", setup, {name: ((), name) for name in MISTAKES})
    with st.container(horizontal=True, vertical_alignment="center"):
        many.controls(say("… and over {samples} strings", samples=SAMPLES))
        st.caption(say("Each mistake is made in this model, on this batch; the numbers are of those runs."))
    cards = list(MISTAKES.values())
    for start in range(0, len(cards), 2):
        for column, mistake in zip(st.columns(2), cards[start : start + 2], strict=False):
            with column, st.container(border=True, key=f"mistake-{mistake.name}"):
                _card(setup, mistake, many, *right)
    batch = (setup.model, setup.sources, *right, setup.targets)
    code.show(*_picture_calls(setup), Call(_PROGRAM + (_WITH_EFFECT if many.is_asked else ""), *batch))
    many.go_on()


def start_place(setup: Setup) -> bool:
    """Kind, layer and head before they are drawn, where there is a head that looks at what it must not see: of a mistake that
    was not shown before, the one that does so most, unless the link says another. Returns whether there is one."""
    state, seen = st.session_state, (setup.model.name, setup.typed, setup.sentence, setup.mistake)
    runs = _runs(setup)
    found = None if runs is None else most_forbidden(*runs)
    if runs is None or found is None:
        return False
    kind, layer, head, _ = found
    focus.take_back()
    is_said = _SEEN not in state and link.address().keys() & {"kind", "layer", "head"}
    if state.get(_SEEN) != seen and not is_said:
        focus.go_to_head(kind, layer, head)
    state[_SEEN] = seen
    focus.start_kind(runs[1].kinds, kind)
    attention = runs[1].attentions[state.kind]
    focus.start_head(attention.layers, focus.heads_of(runs[1], state.kind), (layer, head) if state.kind == kind else (0, 0))
    return True


def _runs(setup: Setup) -> tuple[Trace, Trace] | None:
    """The sentence read with the right mask, and with the mistake that is made; None without one."""
    if setup.model.task is None or setup.mistake is None:
        return None
    right, wrong = (_answered(setup).sound(name).forced()[setup.sentence] for name in (None, setup.mistake))
    return right, wrong


def _seen(setup: Setup, learned: Mistake | None) -> None:
    """Draws the head that looks most at what it must not see, with the right mask and with the mistake.

    Args:
        setup: of the page.
        learned: the mistake that the model was trained with.
    """
    if setup.mistake is None:
        st.caption(
            say("Make a mistake, and the head that looks most at what it must not see is shown here, before and after.")
            if learned is None
            else say(
                "This model was trained with the mistake **{title}**: make it here, and see where it looked.",
                title=say(learned.title),
            )
        )
        return
    right, wrong = (setup.sound(name).forced()[setup.sentence] for name in (None, setup.mistake))
    found, title = most_forbidden(right, wrong), say(MISTAKES[setup.mistake].title)
    if found is None:
        st.markdown(say("With **{title}** no head looks at anything that the right mask hides in this sentence.", title=title))
        return
    kind, layer, head, share = found
    target = setup.typed.targets[setup.sentence]
    reads = say("its own output") if target is None else of_run(target)
    st.markdown(
        say(
            "With **{title}** {layer} of the {kind} spends {share} of its weight on what the right mask "
            "hides. *Before* has the right mask and *after* the mistake; both read {reads}:",
            title=title,
            layer=head_label(layer, head),
            kind=kind_words(kind),
            share=percent_words(share, 1),
            reads=reads,
        )
    )
    state, place = st.session_state, (kind, layer, head)
    if place != (state.kind, state.layer, state.head):
        focus.go_to_head_button(say("Go to {layer}", layer=head_label(layer, head)), "mistake-go", place)
    picture.show_change(setup, right, wrong, "mistake")


def _answered(setup: Setup) -> Setup:
    """The same with the right answers to be read: a model that has learned with a leak writes none of its own."""
    known = zip(setup.typed.targets, setup.sound().decoded(), strict=True)
    targets = tuple(trace.expected if given is None else given for given, trace in known)
    return replace(setup, typed=replace(setup.typed, targets=targets))


def _picture_calls(setup: Setup) -> list[Call]:
    """The call that draws the head in focus, for the code that makes it again."""
    runs, state = _runs(setup), st.session_state
    if runs is None or most_forbidden(*runs) is None:
        return []
    place = map_address(state.kind, state.layer, state.head)
    return [Call(figures.before_and_after, *runs, place, style=style.figure_style())]


def _card(setup: Setup, mistake: Mistake, many: OverMany, decoded: list[Trace], forced: list[Trace]) -> None:
    """Draws a mistake: its button, what is wrong, what it does here and over many texts, and both lines of code."""
    is_on = setup.mistake == mistake.name
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{say(mistake.title)}**")
        st.button(
            say("Take it back") if is_on else say("Make this mistake"),
            key=f"make-{mistake.name}",
            type="primary" if is_on else "secondary",
            on_click=st.session_state.update,
            kwargs={"mistake": NO_MISTAKE if is_on else mistake.name},
        )
    st.markdown(say(mistake.wrong))
    if mistake.needs_padding and not any(PAD in trace.source_tokens for trace in forced):
        st.markdown(say("*Nothing is padded here, so nothing happens. Add a longer line above.*"))
    else:
        # What a mistake does to this batch, with numbers.
        with_mistake = setup.sound(mistake.name)
        wrong, wrong_forced = with_mistake.decoded(), with_mistake.forced()
        changed = sum(a.output_tokens != b.output_tokens for a, b in zip(decoded, wrong, strict=True))
        before, after = decoded[setup.sentence], wrong[setup.sentence]
        words = [say("**Here:** {changed} of {count} sentences come out differently.", changed=changed, count=len(decoded))]
        if before.output_tokens != after.output_tokens:
            texts = [of_run(shorten(run.text, _LONGEST_TEXT)) for run in (before, after)]
            words.append(say("{texts}{answer}.", texts=" → ".join(texts), answer=display_options.answer_of(after)))
        elif changed == 0:
            words.append(say("The output does not show it; the certificate does."))
        looked = forbidden_weight(forced, wrong_forced)
        if looked is not None and looked[1] > 0:
            words.append(
                say(
                    "Forbidden keys get {looked} of the weight in {looked2}.",
                    looked=percent_words(looked[1], 1),
                    looked2=kind_words(looked[0]),
                )
            )
        right_loss, wrong_loss = (rounded_words(losses(traces).loss, 2) for traces in (forced, wrong_forced))
        words.append(say("Loss on the targets: {right_loss} → {wrong_loss}.", right_loss=right_loss, wrong_loss=wrong_loss))
        st.markdown(sentences(words))
    many.result(mistake.name)
    st.code(
        f"# {say('wrong')}\n{mistake.faulty_code}\n# {say('right')}\n{mistake.fixed_code}", language="python", wrap_lines=True
    )
