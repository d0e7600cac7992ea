"""*Hide the answer*: the step player tells what is revealed so far and asks the next question; below it is a box for a guess.

Nothing of a step is sent before it is revealed, so every step is a run of the page.
"""

from functools import partial
from typing import Any

import streamlit as st

from transformer_viz.analysis.guesses import Guess, is_right, outcome_words, question_words, tally_words
from transformer_viz.analysis.sentences import Sentence
from transformer_viz.export.content import linked
from transformer_viz.export.strips import output_strip
from transformer_viz.terms import Kind
from transformer_viz.trace.hidden_answer import HIDDEN
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import player
from transformer_viz.views.state import focus
from transformer_viz.vocabulary import unit

_LONGEST = 64
"""Characters of a token that somebody types."""
_BEGINS: Sentence = (("plain", "Guess what the model does at each step, then see."),)
_HINTS: dict[Kind, str] = {
    "cross": "Or click the source token, or the cell of the outlined row, where it looks. → reveals, ← covers again.",
    "decoder": "Or click the cell of the outlined row where it looks. → reveals, ← covers again.",
    "encoder": "→ reveals, ← covers again.",
}


def show(trace: Trace, at: focus.Focus, *, large: bool, dark: bool) -> None:
    """The player of a run that is covered from the step on, and a row for a guess of the token."""
    state, step = st.session_state, focus.step()
    # What this session has guessed of a run is forgotten where everything is covered again.
    if state.get("guesses_of") != at.run or step <= trace.n_given:
        state.guesses_of, state.guesses = at.run, {}
    guesses: dict[int, Guess] = state.guesses
    player.show(_content(trace, at, guesses, large=large, dark=dark), partial(_heard, trace, at))
    focus.draw_hidden()
    is_over, written = step == trace.n_steps, [token for token in trace.output_tokens if token != HIDDEN]
    row = st.form("guess", clear_on_submit=True, border=False)
    with row.container(horizontal=True, vertical_alignment="center"):
        if trace.output_tokens:
            asks = f"Which {unit(written) if step > 1 else 'token'} comes next?"
            st.markdown(asks, width=190)
            looks: Any = {"label_visibility": "collapsed", "autocomplete": "off", "disabled": is_over, "width": 120}
            st.text_input(asks, max_chars=_LONGEST, key="guessed", **looks)
            st.form_submit_button("Guess", on_click=_guess_token, args=(trace, at), disabled=is_over)
        st.form_submit_button("Reveal", on_click=_reveal, args=(step,), disabled=is_over, type="primary")
        st.markdown(tally_words(trace, (guess for t, guess in guesses.items() if t < step)), width="content")


def _content(trace: Trace, at: focus.Focus, guesses: dict[int, Guess], *, large: bool, dark: bool) -> dict[str, Any]:
    step, n = focus.step(), trace.n_steps
    last = guesses.get(step - 1)
    is_over, asks_key = step == n, at.kind == "cross" and step < n
    content = player.data(trace, at, hint="" if is_over else _HINTS[at.kind], large=large, dark=dark)
    for cell in content["source"]:
        cell["title"] += " – guess that it looks here" if asks_key else ""
    if last is not None and last.key is not None and last.kind == "cross":
        content["source"][last.key]["class"] += " guessed"
        content["source"][last.key]["title"] += " (your guess)"
    revealed = output_strip(trace, with_answer=False)[:step]
    for t, cell in enumerate(revealed):
        if t in guesses:
            cell["class"] += " hit" if is_right(trace, guesses[t]) else " miss"
    covered, looked = {"text": HIDDEN, "title": "not revealed yet", "class": "covered"}, None
    # The source position with the most weight at the step that was revealed last.
    of = at if last is None else last
    if of.kind == "cross" and step > 0 and (row := trace.attentions["cross"].row(of.layer, of.head, step - 1)).any():
        looked = int(row.argmax())
    return content | {
        "is_asked": True,
        "is_guessed": True,
        "step": step,
        "least": trace.n_given,
        # Where Python has moved on, as after a typed guess, the player follows.
        "moved": f"{content['moved']}.{_n_moves()}",
        "linked": linked(trace, at.kind, lines="none") | {"boxed": _n_moves()},
        "output": [*revealed, *[covered] * (n - step)],
        "answer": {
            "class": "" if last is None else "right" if is_right(trace, last) else "wrong",
            "words": outcome_words(trace, at.kind, at.layer, at.head, step - 1, last) if step > trace.n_given else _BEGINS,
        },
        "sentences": [question_words(trace, at.kind, at.layer, at.head, step)] * (n + 1),
        "looked": [looked] * (n + 1),
    }


def _n_moves() -> int:
    return st.session_state.get("guess_moves", 0)


def _reveal(step: int, guess: Guess | None = None) -> None:
    """Reveals a step, whose guess is kept."""
    if guess is not None:
        st.session_state.guesses[step] = guess
    st.session_state.guess_moves = _n_moves() + 1
    focus.set_step(step + 1)


def _guess_token(trace: Trace, at: focus.Focus) -> None:
    token, step = st.session_state.guessed.replace("␣", " "), focus.step()
    if token:
        _reveal(step, Guess(step=step, kind=at.kind, layer=at.layer, head=at.head, token=token))


def _heard(trace: Trace, at: focus.Focus, what: str, report: Any) -> None:
    """What the player reports: a step, or a source token or a cell that was clicked, which is a guess where the model looks,
    or a written token, to which it goes back; nonsense is passed over."""
    step = focus.step()
    if what not in ("step", "pin") or report.get("run") != st.session_state.run:
        return
    if what == "step" and report.get("step") in range(trace.n_given, trace.n_steps + 1):
        focus.set_step(int(report["step"]))
    elif what == "pin":
        # Nothing stays pinned.
        st.session_state.guess_moves = _n_moves() + 1
        query, key = place if isinstance(place := report.get("place"), list) and len(place) == 2 else (None, None)
        is_of_row = query in (None, step) and step < trace.n_steps and at.kind != "encoder"
        if is_of_row and isinstance(key, int) and key in range(len(trace.attentions[at.kind].keys)):
            _reveal(step, Guess(step=step, kind=at.kind, layer=at.layer, head=at.head, key=key))
        elif key is None and query in range(trace.n_given, step):
            focus.set_step(int(query))
