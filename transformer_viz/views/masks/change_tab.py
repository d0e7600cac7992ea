"""The tab Change and run again: a mask, a head or a row of weights is changed, and both runs are compared."""

from collections.abc import Mapping
from functools import partial
from itertools import zip_longest
from typing import Any

import pandas as pd
import streamlit as st

from transformer_viz import edits as plain_edits
from transformer_viz import figures
from transformer_viz.addresses import AttentionAddress, map_address
from transformer_viz.comparison.compare import compare
from transformer_viz.edits import Edit, Flip, Force, HeadOff, MaskOff
from transformer_viz.errors import OptionError
from transformer_viz.figures.attention import SWITCHED_OFF
from transformer_viz.language import later, say
from transformer_viz.mask_checks.effect import SAMPLES, measure_effect
from transformer_viz.sentences.compare_words import change_words, fills_words, off_words
from transformer_viz.terms import Kind, head_label, kind_words, place_words
from transformer_viz.text_display import display_token
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import bar, code, style
from transformer_viz.views.components.markdown import of_run
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.masks import picture
from transformer_viz.views.masks.over_many import MOST_WRITTEN, OverMany
from transformer_viz.views.masks.setup import MOST_OF_EDITS, Setup
from transformer_viz.views.state import focus, link

TITLE, ORDER = later("Change and run again"), 2

_TO_LARGEST = "lab_to_largest"
"""In the session, until the page has run: a head was switched off, whose own map does not change."""
_CLICKS = (later("flips the cell"), later("flips the row"), later("flips the column"), later("forces the row onto the key"))
_REACHES = (later("all layers and heads"), later("this layer"), later("this head"))


def show(setup: Setup) -> None:
    """Draws what is changed, and beside it, on a phone below it, what that does; further down both runs, step by step."""
    state = st.session_state
    before, after = setup.sound().decoded()[setup.sentence], setup.decoded()[setup.sentence]
    if state.pop(_TO_LARGEST, False) and (largest := compare(before, after).largest) is not None:
        focus.go_to_head(largest.kind, largest.layer, largest.head)
    many = OverMany("effect", setup, {"effect": (setup.edits, setup.mistake)})
    with st.container(horizontal=True, vertical_alignment="center", key="change-controls"):
        quiet: Any = {"width": 230, "label_visibility": "collapsed"}
        link.selectbox(
            say("A click on the mask"),
            _CLICKS,
            key="click",
            words="a click {}".format,
            said=lambda does: say("a click {does}", does=say(does)),
            **quiet,
        )
        link.selectbox(
            say("and reaches"),
            _REACHES,
            key="reach",
            words="in {}".format,
            said=lambda where: say("in {where}", where=say(where)),
            **quiet,
        )
        # Buttons that change all rows at once: the kind's mask, or a head.
        kind, layer, head = _one_head()
        title, place = head_label(layer, head), AttentionAddress(kind, layer, head)
        with st.container(horizontal=True, width="content"):
            for label, icon, edit, words in (
                (
                    say("Mask off"),
                    "grid_off",
                    MaskOff(AttentionAddress(kind)),
                    say("Nothing is masked in the {kind}", kind=kind_words(kind)),
                ),
                (say("{title} off", title=title), "visibility_off", HeadOff(place), say("This head's output becomes zeros")),
                (
                    say("{title} uniform", title=title),
                    "density_small",
                    Force(place, None, ()),
                    say("Every row of this head spreads its weight uniformly"),
                ),
            ):
                st.button(label, icon=f":material/{icon}:", on_click=_switch, args=(edit,), help=words)
    _outcome(setup, before, after)
    picture.show_change(setup, before, after, "change", partial(_clicked, after))
    cause, result = st.columns(2)
    with cause:
        link.text_input_pressed(
            say("Edits as text"),
            key="edits",
            most=MOST_OF_EDITS,
            placeholder="cross:3-5, decoder:off, cross.2.4:zero, cross.1.1:3=5",
            help=say(
                "kind:query-key flips a cell, 3-\\* a row, \\*-5 a column; kind:off turns the mask off; "
                "kind.layer.head:zero switches a head off; kind.layer.head:3=5 forces row 3 onto key 5. An edit "
                "holds for every sentence of the batch."
            ),
        )
    with result:
        # The same change over many strings, and the run as a file.
        if setup.is_changed:
            words = say("The effect over {samples} strings", samples=SAMPLES)
            if setup.many is not None:
                link.text_area(
                    say("The effect over many texts, one a line"),
                    key="many",
                    most=bar.MOST_TYPED,
                    height=90,
                    placeholder=say("Empty: the texts above"),
                    help=say(
                        "At most {most_written} tokens are written for each; edits count from a text's own first token.",
                        most_written=MOST_WRITTEN,
                    ),
                )
                words = say("The effect over {count} texts", count=len(setup.many))
            many.controls(words)
            many.result("effect")
            st.download_button(
                say("This run as a file"), to_bytes(after), "edited.npz", "application/octet-stream", icon=":material/download:"
            )
    _steps(before, after)
    said = Call("print({0}.text, {1}.text, {2}.largest)", before, after, Call(compare, before, after))
    # In one call, where the page computes a few texts at a time.
    change_made: Any = {"edits": setup.edits, "mistake": setup.mistake}
    over: list[Any] = [setup.model]
    if setup.many is not None:
        over.append([*setup.many])
        change_made["max_length"] = min(MOST_WRITTEN, setup.model.default_max_length)
    effects = [Call("print({})", Call(measure_effect, *over, **change_made))] if many.is_asked else []
    code.show(said, *_pictures(before, after), *effects)
    many.go_on()


def _pictures(before: Trace, after: Trace) -> list[Call]:
    """The calls that draw the mask, what it changes, and the head before and after, for the code that makes them again."""
    state, (kind, layer, head), looks = st.session_state, _one_head(), {"style": style.figure_style()}
    at, size = map_address(state.kind, state.layer, state.head), {"height": picture.height(after, kind), **looks}
    # Of the sound model: one for all layers and heads.
    sound = Call("{}.attentions[{}].mask", before, kind)
    return [
        Call(figures.mask, after, map_address(kind, layer, head), before=sound, **size),
        Call(figures.change, before, after, at, **size),
        *(Call(figures.attention, run, at, **looks) for run in (before, after)),
    ]


def _switch(edit: Edit) -> None:
    _toggle(edit)
    st.session_state[_TO_LARGEST] = isinstance(edit, HeadOff) and edit in plain_edits.parse(st.session_state.edits)


def _one_head() -> tuple[Kind, int, int]:
    """The focus; the first head where several are shown together."""
    state = st.session_state
    return state.kind, state.layer, state.head if isinstance(state.head, int) else 0


def _outcome(setup: Setup, before: Trace, after: Trace) -> None:
    """Draws which heads are off, what comes out differently, and the way to the largest change."""
    if not setup.is_changed:
        st.info(
            say("Nothing is changed yet. Click a cell of the mask, or a label for its row or column."),
            icon=":material/touch_app:",
        )
        return
    comparison = compare(before, after)
    with st.container(gap="xxsmall"):
        for edit in plain_edits.read(setup.edits):
            if isinstance(edit, HeadOff):
                # What switching off means, and the way back: the focus may be elsewhere by now.
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.markdown(say("**{head}**: {does}", head=off_words(edit), does=say(SWITCHED_OFF)), width="content")
                    st.button(
                        say("On again"), f"on-{edit}", on_click=_toggle, args=(edit,), icon=":material/undo:", type="tertiary"
                    )
        st.markdown(_outcome_words(before, after, comparison.parted))
        if comparison.largest is None:
            st.markdown(say("No weight changes."))
        else:
            words = say("Largest change: {largest}.", largest=change_words(comparison.largest))
            focus.say_largest(comparison, words, "change-largest")


def _outcome_words(before: Trace, after: Trace, parted: int | None) -> str:
    """Says what was written before and after; of a model that writes nothing, what it puts at its mask tokens."""
    if after.n_steps:
        if parted is None:
            return say("**The output is the same.**")
        texts = [f"**{of_run(run.text)}**" for run in (before, after)]
        fields: dict[str, Any] = {"step": parted + 1, "before": texts[0], "after": texts[1]}
        return (
            say("**The output changes from step {step} on.** {before} has become {after}, which the limit stopped.", **fields)
            if after.finished == "length"
            else say("**The output changes from step {step} on.** {before} has become {after}.", **fields)
        )
    if not before.fills:
        return say("**This model writes nothing**; its weights change.")
    first, second = map(fills_words, (before, after))
    if first == second:
        return say("**What it puts at its mask tokens is the same.**")
    return say(
        "**What it puts at its mask tokens changes.** **{first}** has become **{second}**.",
        first=of_run(first),
        second=of_run(second),
    )


def _steps(before: Trace, after: Trace) -> None:
    """Draws what was written step by step, or what stands at the mask tokens, with its probability."""
    if after.n_steps:
        name, both = say("step"), [[(step.token, step.probability) for step in run.steps] for run in (before, after)]
        pairs = list(enumerate(zip_longest(*both, fillvalue=(None, None)), start=1))[after.n_given :]
    else:
        name, both = say("place"), [[fill.candidates[0] for fill in run.fills] for run in (before, after)]
        pairs = list(zip([place_words(fill.place) for fill in after.fills], zip(*both, strict=True), strict=True))
    rows = [
        {
            name: place,
            say("before"): "" if first is None else display_token(first),
            say("p before"): p_first,
            say("after"): "" if second is None else display_token(second),
            say("p after"): p_second,
            say("compared"): say("differs") if first != second else "",
        }
        for place, ((first, p_first), (second, p_second)) in pairs
    ]
    if rows:
        looks: Any = {"min_value": 0.0, "max_value": 1.0, "format": "%.4f"}
        bars = {name: st.column_config.ProgressColumn(name, **looks) for name in (say("p before"), say("p after"))}
        st.dataframe(pd.DataFrame(rows), hide_index=True, column_config=bars)


def _clicked(trace: Trace, cell: Any) -> None:
    """Edits a clicked cell, or the row or column of a clicked label, of the head that was seen; nonsense is passed over."""
    if not isinstance(cell, Mapping) or cell.get("kind") not in trace.kinds:
        return
    kind, places = cell["kind"], [cell.get(name) for name in ("layer", "head", "query", "key")]
    if any(type(number) is not int or number < 0 for number in places[:2]) or places[2:] == [None, None]:
        return
    if any(number is not None and (type(number) is not int or number < 0) for number in places[2:]):
        return
    layer, head, query, key = places
    state = st.session_state
    attention = trace.attentions[kind]
    if layer not in attention.layers or head >= attention.n_heads:
        return
    if (query is not None and query >= len(attention.queries)) or (key is not None and key >= len(attention.keys)):
        return
    what, reach = state.get("click", _CLICKS[0]), state.get("reach", _REACHES[0])
    place = (AttentionAddress(kind), AttentionAddress(kind, layer), AttentionAddress(kind, layer, head))[_REACHES.index(reach)]
    if query is None or key is None:
        _toggle(Flip(place, query, key))
    elif what == _CLICKS[3]:
        _toggle(Force(place, query, ((key, 1.0),)))
    else:
        _toggle(Flip(place, None if what == _CLICKS[2] else query, None if what == _CLICKS[1] else key))


def _toggle(edit: Edit) -> None:
    """Adds an edit; the same one a second time takes it back."""
    try:
        known = list(plain_edits.parse(st.session_state.edits))
    except OptionError:
        known = []
    if edit in known:
        known.remove(edit)
    else:
        if isinstance(edit, Force):
            known = [e for e in known if not (isinstance(e, Force) and (e.place, e.query) == (edit.place, edit.query))]
        known.append(edit)
    st.session_state.edits = ", ".join(map(str, known[: plain_edits.MOST_EDITS]))
