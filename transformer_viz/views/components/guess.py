"""*Hide the answer*: what is revealed so far, the next question and a box for a guess replace the step player.

Nothing of a step is sent before it is revealed, so every step is a run of the page.
"""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz.analysis.guesses import Guess, is_right, outcome_words, question_words, tally_words
from transformer_viz.analysis.sentences import Sentence
from transformer_viz.export.assets import asset, script
from transformer_viz.export.strips import output_strip, prompt_token, source_strip
from transformer_viz.terms import Kind
from transformer_viz.trace.hidden_answer import HIDDEN
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import clicks, term_tips
from transformer_viz.views.state import focus
from transformer_viz.vocabulary import unit

_KEY = "guess"
_LONGEST = 64
"""Characters of a token that somebody types."""
_BEGINS: Sentence = (("plain", "Guess what the model does at each step, then see."),)
_HINTS: dict[Kind, str] = {
    "cross": "Or click the source token, or the cell of the outlined row, where it looks. → reveals, ← covers again.",
    "decoder": "Or click the cell of the outlined row where it looks. → reveals, ← covers again.",
    "encoder": "→ reveals, ← covers again.",
}


def show(trace: Trace, at: focus.Focus, *, large: bool, dark: bool) -> None:
    """The strips, what came, the question and the box of a run that is covered from the step on."""
    _component()(
        key=_KEY,
        data=_data(trace, at, _guesses(at.run, trace.n_given), large=large, dark=dark),
        on_reveal_change=lambda: _reveal((st.session_state.get(_KEY) or {}).get("reveal"), trace, at),
    )
    focus.draw_hidden()


def on_map(trace: Trace, at: focus.Focus) -> clicks.Clicks:
    """A click on a cell of the row that is to be guessed, or on a column's label."""
    step = focus.step()

    def heard(query: int | None, key: int | None) -> None:
        if key is not None and query in (None, step):
            _reveal({"run": at.run, "step": step + 1, "guess": {"key": key}}, trace, at)

    return clicks.cells(heard)


def _data(trace: Trace, at: focus.Focus, guesses: dict[int, Guess], *, large: bool, dark: bool) -> dict[str, Any]:
    step = focus.step()
    last = guesses.get(step - 1)
    words = outcome_words(trace, at.kind, at.layer, at.head, step - 1, last) if step > trace.n_given else _BEGINS
    judged = "" if last is None else "right" if is_right(trace, last) else "wrong"
    asks = f"Which {unit(_written(trace)) if step > 1 else 'token'} comes next?" if trace.output_tokens else ""
    return {
        "run": at.run,
        "step": step,
        "n_steps": trace.n_steps,
        "prompt": prompt_token(trace),
        "first": trace.n_given,
        "hint": term_tips.mark(_HINTS[at.kind] if step < trace.n_steps else ""),
        "terms": term_tips.meanings(),
        "large": large,
        "dark": dark,
        "source": _source(trace, at, last),
        "output": _output(trace, step, guesses),
        "answer": {"class": judged, "words": words},
        "question": question_words(trace, at.kind, at.layer, at.head, step),
        "looked": _looked_at(trace, at, last, step - 1),
        "looks_at_source": at.kind == "cross" and step < trace.n_steps,
        "asks": asks,
        "tally": tally_words(trace, (guess for t, guess in guesses.items() if t < step)),
    }


def _written(trace: Trace) -> tuple[str, ...]:
    return tuple(token for token in trace.output_tokens if token != HIDDEN)


def _source(trace: Trace, at: focus.Focus, last: Guess | None) -> list[dict[str, Any]]:
    cells = source_strip(trace)
    if at.kind == "cross" and focus.step() < trace.n_steps:
        cells = [{**cell, "title": f"{cell['title']} – guess that it looks here"} for cell in cells]
    if last is not None and last.key is not None and last.kind == "cross":
        cells[last.key]["class"] += " guessed"
        cells[last.key]["title"] += " (your guess)"
    return cells


def _output(trace: Trace, step: int, guesses: dict[int, Guess]) -> list[dict[str, Any]]:
    revealed = output_strip(trace, with_answer=False)[:step]
    for t, cell in enumerate(revealed):
        if t in guesses:
            cell["class"] += " hit" if is_right(trace, guesses[t]) else " miss"
    covered = {"text": HIDDEN, "title": "not revealed yet", "class": "covered"}
    return [*revealed, *[covered] * (trace.n_steps - step)]


def _looked_at(trace: Trace, at: focus.Focus, last: Guess | None, step: int) -> int | None:
    """The source position with the most weight at the step that was revealed last."""
    kind, layer, head = (at.kind, at.layer, at.head) if last is None else (last.kind, last.layer, last.head)
    if kind != "cross" or step < 0:
        return None
    row = trace.attentions[kind].row(layer, head, step)
    return int(row.argmax()) if row.any() else None


def _guesses(run: str, n_given: int) -> dict[int, Guess]:
    """What this session has guessed of a run; forgotten where everything is covered again."""
    state = st.session_state
    if state.get("guesses_of") != run or focus.step() <= n_given:
        state.guesses_of, state.guesses = run, {}
    return state.guesses


def _reveal(report: Any, trace: Trace, at: focus.Focus) -> None:
    """Goes to a step that the browser asks for, and keeps a guess of the one before it; nonsense is passed over."""
    if not isinstance(report, dict) or report.get("run") != st.session_state.get("run"):
        return
    step = report.get("step")
    if not isinstance(step, int) or step not in range(trace.n_given, trace.n_steps + 1):
        return
    guess = report.get("guess")
    if isinstance(guess, dict) and step == focus.step() + 1:
        _keep(guess, step - 1, trace, at)
    focus.set_step(step)


def _keep(said: dict[str, Any], step: int, trace: Trace, at: focus.Focus) -> None:
    token, key = said.get("token"), said.get("key")
    guesses = _guesses(at.run, trace.n_given)
    if isinstance(token, str) and 0 < len(token) <= _LONGEST and trace.output_tokens:
        guesses[step] = Guess(step=step, kind=at.kind, layer=at.layer, head=at.head, token=token.replace("␣", " "))
    elif isinstance(key, int) and at.kind != "encoder" and key in range(len(trace.attentions[at.kind].keys)):
        guesses[step] = Guess(step=step, kind=at.kind, layer=at.layer, head=at.head, key=key)


@cache
def _component() -> Any:
    """Registered once a process: the files are ours, what a user typed comes as data only."""
    html, css, js = (Path(__file__).with_name(f"guess.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    css = "\n".join([asset("player.css"), term_tips.STYLE, css])
    js = "\n".join([script("pieces.js", "player.js"), js])
    return st.components.v2.component("transformer-viz-guess", html=html, css=css, js=js)
