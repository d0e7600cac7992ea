"""What if it had written this instead? Another token at a step, another beginning, banned tokens, or a whole target."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.compare_words import change_words
from transformer_viz.analysis.comparison import compare
from transformer_viz.errors import TraceTooLarge, TransformerVizError
from transformer_viz.figures.theme import ThemeName
from transformer_viz.terms import KIND_TITLES, visible
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import chart, code, figure_file, jump, screen
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.snippets import explore as programs
from transformer_viz.views.state import controls, display_options, link
from transformer_viz.vocabulary import SPECIAL_TOKENS

if TYPE_CHECKING:
    from transformer_viz.checkpoints import Checkpoint

TITLE, ORDER, NEEDS_MODEL = "What if", 1, True
TELLS = "Other runs"

HOWS = tuple(controls.HOWS.values())
TOKEN, BEGINNING, BAN, TARGET = HOWS
OPENED_BY = ("change", "at", "prefix", "begin", "ban", "target")


def show(shown: Shown) -> None:
    """The controls, and both runs side by side."""
    trace, checkpoint, device = shown.trace, shown.checkpoint, shown.device
    assert checkpoint is not None
    start(trace, checkpoint, device)
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control("What if it had …", HOWS, key="what_if_how", required=True)
        if state.what_if_how == TOKEN:
            _token_controls(_so_far(trace, checkpoint, device), checkpoint)
        elif state.what_if_how == BEGINNING:
            words = "what the output begins with"
            st.text_input("begins with", key="what_if_begin", width=300, placeholder=words)
        elif state.what_if_how == BAN:
            symbols = checkpoint.task.target_vocabulary.symbols
            st.multiselect("never write", symbols, key="what_if_ban", width=360, format_func=visible)
        else:
            st.text_input("to read", key="what_if_target", width=360, placeholder="any target text")
        st.button("Undo", icon=":material/undo:", on_click=_undo, key="what-if-undo")
    change: dict[str, Any] = {}
    try:
        change = _change(checkpoint)
        other = _run(trace, checkpoint, device)
    except TraceTooLarge:
        st.warning("The other run would take more than the page allows. Shorten it.", icon=":material/memory:")
        return
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    if other is not None:
        _compare(trace, other, shown.theme)
    place = (state.kind, state.layer, state.head, _columns())
    code.show(programs.what_if(code.run_of(trace, checkpoint, device), change, *place, code.looks()), "code_of_tab")


def start(trace: Trace, checkpoint: "Checkpoint", device: str) -> None:
    """First values, from the link where it has any; another run forgets a forced beginning, which was its own."""
    state, symbols = st.session_state, checkpoint.task.target_vocabulary.symbols
    if state.get("what_if_of", trace.source) != trace.source:
        state.what_if_prefix = []
    state.what_if_of = trace.source
    link.start("what_if_prefix", symbols, [])
    link.start("what_if_ban", symbols, [], fallback=[token for token in state.get("what_if_ban", []) if token in symbols])
    link.start("what_if_begin", default="")
    link.start("what_if_target", default="")
    asked = {TARGET: state.what_if_target, BAN: state.what_if_ban, BEGINNING: state.what_if_begin, TOKEN: state.what_if_prefix}
    link.start("what_if_how", default=next((how for how, what in asked.items() if what), TOKEN))
    # A change says by itself what kind it is.
    link.leave_out("what_if_how", state.what_if_how if asked[state.what_if_how] else TOKEN)
    if state.tables == "What if" and state.what_if_how == TOKEN:
        n = len(_so_far(trace, checkpoint, device).steps)
        # It begins as the player's step, so a link says it wherever it is seen.
        link.start("what_if_step", range(1, n + 1), min(state.step + 1, n), fallback=n)
        link.leave_out("what_if_step")


def _so_far(trace: Trace, checkpoint: "Checkpoint", device: str) -> Trace:
    """The run in which the next token is changed: the changed one, once there is one."""
    try:
        return _run(trace, checkpoint, device) or trace
    except TransformerVizError:
        return trace


def _token_controls(trace: Trace, checkpoint: "Checkpoint") -> None:
    state = st.session_state
    n = len(trace.steps)
    st.number_input("at step", 1, n, key="what_if_step", width=120)
    step = trace.steps[state.what_if_step - 1]
    others = [token for token, _ in step.candidates if token != step.token and token not in SPECIAL_TOKENS]
    probabilities = dict(step.candidates)
    rest = [token for token in checkpoint.task.target_vocabulary.symbols if token not in probabilities and token != step.token]
    options = ["", *others, *rest]
    if state.get("what_if_token") not in options:
        state.what_if_token = ""
    st.selectbox(
        "written",
        options,
        key="what_if_token",
        width=230,
        format_func=lambda token: _option(token, step.token, probabilities),
        on_change=_force,
        args=(trace,),
        help="Type to search. The tokens that the model thought of come first.",
    )


def _option(token: str, written: str, probabilities: dict[str, float]) -> str:
    if not token:
        return f"instead of {visible(written)} …"
    return f"{visible(token)} (p = {probabilities[token]:.2g})" if token in probabilities else visible(token)


def _force(trace: Trace) -> None:
    state = st.session_state
    token = state.what_if_token
    state.what_if_prefix = [*trace.output_tokens[: state.what_if_step - 1], token] if token else []


def _undo() -> None:
    state = st.session_state
    state.what_if_prefix, state.what_if_ban, state.what_if_token = [], [], ""
    state.what_if_begin = state.what_if_target = ""


def _run(trace: Trace, checkpoint: "Checkpoint", device: str) -> Trace | None:
    """The other run, or None where nothing is asked for."""
    change = _change(checkpoint)
    if not change:
        return None
    asked = (tuple(change.get("prefix", ())), tuple(change.get("ban", ())), change.get("target"))
    # Here, because a file has the other tabs where there is no model.
    from transformer_viz.views.cache import runs

    return runs.what_if(checkpoint, device, trace, *asked)


def _change(checkpoint: "Checkpoint") -> dict[str, Any]:
    """The keywords of `decode` that make the other run; empty where nothing is asked for."""
    state = st.session_state
    how = state.what_if_how
    if how == TOKEN and state.what_if_prefix:
        return {"prefix": list(state.what_if_prefix)}
    if how == BEGINNING and state.what_if_begin:
        return {"prefix": list(checkpoint.task.read_target(state.what_if_begin))}
    if how == BAN and state.what_if_ban:
        return {"ban": list(state.what_if_ban)}
    if how == TARGET and state.what_if_target:
        return {"target": state.what_if_target}
    return {}


def _compare(before: Trace, after: Trace, theme: ThemeName) -> None:
    comparison = compare(before, after)
    texts = [f"**{of_run(run.text)}**{display_options.answer_of(run)}" for run in (before, after)]
    where = "They are the same." if comparison.parted is None else f"They diverge at step {comparison.parted + 1}."
    totals = [sum(step.log_probability for step in run.steps) for run in (before, after)]
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
