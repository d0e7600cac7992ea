"""What if it had written this instead? Another token at a step, another beginning, banned tokens, or a whole target."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.compare_words import change_words
from transformer_viz.analysis.comparison import compare
from transformer_viz.errors import TraceTooLarge, TransformerVizError
from transformer_viz.figures.theme import ThemeName
from transformer_viz.terms import KIND_TITLES
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, code, figure_file, jump, screen
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.explore.vocabulary import Token, Vocabulary
from transformer_viz.views.snippets import explore as programs
from transformer_viz.views.state import controls, display_options, link, words

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

TITLE, ORDER, NEEDS_MODEL = "What if", 1, True
TELLS = "Other runs"

HOWS = tuple(controls.HOWS.values())
TOKEN, BEGINNING, BAN, TARGET = HOWS
_LONGEST_SOUGHT = 64
OPENED_BY = ("change", "at", "prefix", "begin", "ban", "target")


def show(shown: Shown) -> None:
    """The controls, and both runs side by side."""
    trace, model, device = shown.tokens, shown.model, shown.device
    assert model is not None
    start(trace, model, device)
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control("What if it had …", HOWS, key="what_if_how", required=True)
        if state.what_if_how == TOKEN:
            _token_controls(_so_far(trace, model, device), Vocabulary(model))
        elif state.what_if_how == BEGINNING:
            words = "what the output begins with"
            st.text_input("begins with", key="what_if_begin", width=300, placeholder=words)
        elif state.what_if_how == BAN:
            _ban_controls(trace, Vocabulary(model))
        else:
            st.text_input("to read", key="what_if_target", width=360, placeholder="any target text")
        st.button("Undo", icon=":material/undo:", on_click=_undo, key="what-if-undo")
    change: dict[str, Any] = {}
    try:
        change = _change(model)
        other = _run(trace, model, device)
    except TraceTooLarge:
        st.warning("The other run would take more than the page allows. Shorten it.", icon=":material/memory:")
        return
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    if other is not None:
        _compare(trace, other, shown.theme)
    place = (state.kind, state.layer, state.head, _columns())
    code.show(programs.what_if(code.run_of(trace, model, device), change, *place, code.looks()), "code_of_tab")


def is_for(model: "LoadedModel") -> bool:
    """Whether it writes anything."""
    return model.model.sizes.writes


def start(trace: Trace, model: "LoadedModel", device: str) -> None:
    """First values, from the link where it has any; another run forgets a forced beginning, which was its own."""
    state, tokens = st.session_state, Vocabulary(model).tokens
    # An id means something else to another model.
    run = trace.source if model.tokenizer.has_unique_labels else (trace.source, model.name)
    if state.get("what_if_of", run) != run:
        state.what_if_prefix = []
    state.what_if_of = run
    link.start("what_if_prefix", tokens, [])
    link.start("what_if_ban", tokens, [], fallback=[token for token in state.get("what_if_ban", []) if token in tokens])
    link.start("what_if_begin", default="")
    link.start("what_if_target", default="")
    asked = {TARGET: state.what_if_target, BAN: state.what_if_ban, BEGINNING: state.what_if_begin, TOKEN: state.what_if_prefix}
    link.start("what_if_how", default=next((how for how, what in asked.items() if what), TOKEN))
    # A change says by itself what kind it is.
    link.leave_out("what_if_how", state.what_if_how if asked[state.what_if_how] else TOKEN)
    if state.tables == "What if" and state.what_if_how == TOKEN:
        n, least = len(_so_far(trace, model, device).steps), trace.n_given + 1
        # It begins as the player's step, so a link says it wherever it is seen.
        link.start("what_if_step", range(least, n + 1), max(least, min(words.token_step(trace) + 1, n)), fallback=n)
        link.leave_out("what_if_step")


def _so_far(trace: Trace, model: "LoadedModel", device: str) -> Trace:
    """The run in which the next token is changed: the changed one, once there is one."""
    try:
        return _run(trace, model, device, waits=False) or trace
    except TransformerVizError:
        return trace


def _token_controls(trace: Trace, vocabulary: Vocabulary) -> None:
    state = st.session_state
    n = len(trace.steps)
    st.number_input("at step", trace.n_given + 1, n, key="what_if_step", width=120)
    step = trace.steps[state.what_if_step - 1]
    options = ["", *vocabulary.others(step, _sought(vocabulary))]
    probabilities, written = vocabulary.candidates(step), vocabulary.label(vocabulary.own(step))
    if state.get("what_if_token") not in options:
        state.what_if_token = ""
    st.selectbox(
        "written",
        options,
        key="what_if_token",
        width=230,
        format_func=lambda token: _option(token, written, probabilities, vocabulary),
        on_change=_force,
        args=(trace, vocabulary),
        help="Type to search. The tokens that the model thought of come first.",
    )


def _ban_controls(trace: Trace, vocabulary: Vocabulary) -> None:
    state, tokens = st.session_state, vocabulary.tokens
    if vocabulary.is_searched:
        likely = vocabulary.written(trace)
        found = vocabulary.found(sought) if (sought := _sought(vocabulary)) else likely
        tokens = list(dict.fromkeys([*state.what_if_ban, *found]))
    st.multiselect("never write", tokens, key="what_if_ban", width=360, format_func=vocabulary.label)


def _sought(vocabulary: Vocabulary) -> str:
    """What is looked for in a large vocabulary, in a box for it; nothing where all of it is in the other box."""
    if not vocabulary.is_searched:
        return ""
    words = f"all {len(vocabulary.tokens):,} tokens"
    return st.text_input("find in the vocabulary", key="what_if_find", width=190, placeholder=words)[:_LONGEST_SOUGHT]


def _option(token: Token, written: str, probabilities: dict[Token, float], vocabulary: Vocabulary) -> str:
    if token == "":
        return f"instead of {written} …"
    label = vocabulary.label(token)
    return f"{label} (p = {probabilities[token]:.2g})" if token in probabilities else label


def _force(trace: Trace, vocabulary: Vocabulary) -> None:
    state = st.session_state
    token, n_before = state.what_if_token, state.what_if_step - 1 - trace.n_given
    state.what_if_prefix = [*vocabulary.written(trace)[:n_before], token] if token != "" else []


def _undo() -> None:
    state = st.session_state
    state.what_if_prefix, state.what_if_ban, state.what_if_token = [], [], ""
    state.what_if_begin = state.what_if_target = ""


def _run(trace: Trace, model: "LoadedModel", device: str, *, waits: bool = True) -> Trace | None:
    """The other run, or None where nothing is asked for."""
    change = _change(model)
    if not change:
        return None
    asked = (tuple(change.get("prefix", ())), tuple(change.get("ban", ())), change.get("target"))
    # Here, because a file has the other tabs where there is no model.
    from transformer_viz.views.cache import runs

    return runs.what_if(model, device, trace, *asked, waits=waits)


def _change(model: "LoadedModel") -> dict[str, Any]:
    """The keywords of `decode` that make the other run; empty where nothing is asked for."""
    state = st.session_state
    how = state.what_if_how
    if how == TOKEN and state.what_if_prefix:
        return {"prefix": list(state.what_if_prefix)}
    if how == BEGINNING and state.what_if_begin:
        typed = state.what_if_begin
        return {"prefix": list(model.task.read_target(typed)) if model.task else model.tokenizer.target(typed)}
    if how == BAN and state.what_if_ban:
        return {"ban": list(state.what_if_ban)}
    if how == TARGET and state.what_if_target:
        return {"target": state.what_if_target}
    return {}


def _compare(before: Trace, after: Trace, theme: ThemeName) -> None:
    comparison = compare(before, after)
    texts = [f"**{of_run(run.text)}**{display_options.answer_of(run)}" for run in (before, after)]
    where = "They are the same." if comparison.parted is None else f"They diverge at step {comparison.parted + 1}."
    totals = [sum(step.log_probability for step in run.steps[run.n_given :]) for run in (before, after)]
    st.markdown(f"{texts[0]}, log p = {totals[0]:.4g}, and {texts[1]}, log p = {totals[1]:.4g}. {where}")
    if comparison.largest is not None:
        words = f"Largest change of a weight where both have a cell: {change_words(comparison.largest)}."
        jump.to_largest(comparison, words, "what-if-largest")
    state = st.session_state
    columns = _columns()
    figure = figures.before_and_after(before, after, state.kind, state.layer, state.head, theme=theme, columns=columns)
    words = f"{KIND_TITLES[state.kind]} of the focus head in both runs, and the signed difference"
    chart.show(figure, "what-if-chart", words)
    figure_file.offer(figure, "what-if")
    st.download_button(
        "The other run as a file", to_bytes(after), "what-if.npz", "application/octet-stream", icon=":material/download:"
    )


def _columns() -> int:
    return 1 if screen.is_narrow() else 3
