"""*Hide the answer*: the step player tells what is revealed so far and asks the next question; below it is a box for a guess.

Nothing of a step is sent before it is revealed, so the viewer is given another run at each.
"""

from typing import Any

import streamlit as st

from transformer_viz.export.strips import output_strip, source_strip
from transformer_viz.language import later, say
from transformer_viz.sentences.guesses import Guess, is_right, outcome_words, question_words, tally_words
from transformer_viz.sentences.run_sentences import say_sentence
from transformer_viz.terms import Kind
from transformer_viz.trace.hidden_answer import HIDDEN
from transformer_viz.trace.trace import Trace
from transformer_viz.views.state import focus
from transformer_viz.vocabulary import unit

_LONGEST = 64
"""Characters of a token that somebody types."""
_BEGINS = later("Guess what the model does at each step, then see.")
_HINTS: dict[Kind, str] = {
    "cross": later("Or click the source token, or the cell of the outlined row, where it looks. → reveals, ← covers again."),
    "decoder": later("Or click the cell of the outlined row where it looks. → reveals, ← covers again."),
    "encoder": later("→ reveals, ← covers again."),
}


def hear(trace: Trace, at: focus.Focus) -> None:
    """Takes a press in the picture: a source token, or a cell of the outlined row, is a guess; nothing stays pinned."""
    state, step, pinned = st.session_state, focus.step(), focus.pinned()
    # What this session has guessed of a run is forgotten where everything is covered again.
    if state.get("guesses_of") != at.run or step <= trace.n_given:
        state.guesses_of, state.guesses = at.run, {}
    if not pinned:
        return
    focus.set_pin(())
    query, key = pinned
    is_of_row = query in (None, step) and step < trace.n_steps and at.kind != "encoder"
    if is_of_row and key is not None:
        _reveal(step, Guess(step=step, kind=at.kind, layer=at.layer, head=at.head, key=key))
    elif key is None and query is not None and trace.n_given <= query < step:
        focus.set_step(query)


def boxes(trace: Trace) -> None:
    """A box for a guess of the token, a button that reveals it, and how many were right."""
    state, step = st.session_state, focus.step()
    is_over, written = step == trace.n_steps, trace.output_tokens[:step]
    row = st.form("guess", clear_on_submit=True, border=False)
    with row.container(horizontal=True, vertical_alignment="center"):
        if trace.output_tokens:
            noun = unit(written) if step > 1 else "token"
            asks = say("Which {unit} comes next?", unit=say(noun))
            st.markdown(asks, width=190)
            looks: Any = {"label_visibility": "collapsed", "autocomplete": "off", "disabled": is_over, "width": 120}
            st.text_input(asks, max_chars=_LONGEST, key="guessed", **looks)
            st.form_submit_button(say("Guess"), on_click=_guess_token, args=(focus.current(),), disabled=is_over)
        st.form_submit_button(say("Reveal"), on_click=_reveal, args=(step,), disabled=is_over, type="primary")
        told = (guess for t, guess in state.guesses.items() if t < step)
        st.markdown(tally_words(trace, told), width="content")


def parts(trace: Trace, at: focus.Focus) -> dict[str, Any]:
    """The parts of the viewer for a run that is covered from the step on."""
    guesses: dict[int, Guess] = st.session_state.guesses
    step, n = focus.step(), trace.n_steps
    last = guesses.get(step - 1)
    is_over, asks_key = step == n, at.kind == "cross" and step < n
    source = source_strip(trace)
    for cell in source:
        cell["title"] = say("{token} – guess that it looks here", token=cell["title"]) if asks_key else cell["title"]
    if last is not None and last.key is not None and last.kind == "cross":
        source[last.key]["class"] += " guessed"
        source[last.key]["title"] = say("{token} (your guess)", token=source[last.key]["title"])
    revealed = output_strip(trace, with_answer=False)[:step]
    for t, cell in enumerate(revealed):
        if t in guesses:
            cell["class"] += " hit" if is_right(trace, guesses[t]) else " miss"
    covered, looked = {"text": HIDDEN, "title": say("not revealed yet"), "class": "covered"}, None
    # The source position with the most weight at the step that was revealed last.
    of = at if last is None else last
    if of.kind == "cross" and step > 0 and (row := trace.attentions["cross"].row(of.layer, of.head, step - 1)).any():
        looked = int(row.argmax())
    return {
        "isGuessed": True,
        "least": trace.n_given,
        "steps": n + 1,
        "hint": [("plain", "" if is_over else say(_HINTS[at.kind]))],
        "hasLines": False,
        "source": source,
        "output": [*revealed, *[covered] * (n - step)],
        "answer": {
            "class": "" if last is None else "right" if is_right(trace, last) else "wrong",
            "words": outcome_words(trace, at.kind, at.layer, at.head, step - 1, last)
            if step > trace.n_given
            else say_sentence(_BEGINS),
        },
        "said": question_words(trace, at.kind, at.layer, at.head, step),
        "looked": looked,
    }


def _reveal(step: int, guess: Guess | None = None) -> None:
    """Reveals a step, whose guess is kept."""
    if guess is not None:
        st.session_state.guesses[step] = guess
    focus.set_step(step + 1)


def _guess_token(at: focus.Focus) -> None:
    token, step = st.session_state.guessed.replace("␣", " "), focus.step()
    if token:
        _reveal(step, Guess(step=step, kind=at.kind, layer=at.layer, head=at.head, token=token))
