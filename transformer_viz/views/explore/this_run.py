"""The small line below the pictures: the model, its accuracy and the settings of this run; for a file, what the file says."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from transformer_viz.numbers_in_words import count_words, duration_words, percent_words
from transformer_viz.sentences.run_sentences import step_name
from transformer_viz.terms import KIND_TITLES
from transformer_viz.text_display import display_text, shorten
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache import limits
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import display_options

if TYPE_CHECKING:
    from transformer_viz.checkpoints import Checkpoint
    from transformer_viz.loaded_model import LoadedModel

_MOST_NOTES, _LONGEST_NOTE = 100, 300


_ENDED = {"end": "with the end symbol", "length": "at the length limit", "given": "the tokens were given"}
_JUDGED_BY = {"held-out": "texts that training never saw", "trained": "texts, the same that it was trained on"}


def show(shown: Shown) -> None:
    """Draws a line that opens: with what is known of the model, or with the notes of a file."""
    trace = shown.tokens
    if shown.model is None:
        with st.expander(":small[What the file says of its run]", type="compact"):
            _notes(trace)
        return
    part, made_by, seconds = limits.words_of(trace.made_by), trace.made_by, trace.made_by.get("seconds")
    words = f"{'checkpoint' if 'task' in made_by else 'model'} {made_by.get('checkpoint')} ({made_by.get('variant')})"
    words += f", task {made_by['task']}" if "task" in made_by else ""
    did = f"{made_by.get('strategy')} decoding" if trace.writes else "read"
    words += f", {did} on {made_by.get('device')}"
    if isinstance(seconds, int | float):
        words += f", {duration_words(seconds)} for {count_words(len(trace.rows), step_name(trace))}"
    words += f"; kept: {part}" if part else ""
    with st.expander(f":small[This run: {literal(words)}]", type="compact"):
        limits.caption(shown.whole or trace)
        about = _model(shown.checkpoint) if shown.checkpoint is not None else _sizes_of(shown.model)
        # Together: each further text is 1.5 ms of an Enter.
        st.text("\n".join(about))


def _notes(trace: Trace) -> None:
    """Draws what a file says of its run, as text: nobody has checked it."""
    with_answer = display_options.current().with_answer
    facts: dict[str, Any] = {
        "source": display_text(trace.source),
        "written": display_text(trace.text) if with_answer and trace.writes else None,
        "right answer": display_text(trace.expected) if with_answer and trace.expected is not None else None,
        "tokens of the prompt": trace.n_given + 1 if trace.n_given else None,
        "ended": _ENDED[trace.finished] if trace.writes else None,
        "guesses at mask tokens": len(trace.fills) or None,
    }
    for kind, attention in trace.attentions.items():
        facts[KIND_TITLES[kind]] = "{} × {} heads, {} × {} tokens".format(*attention.weights.shape)
    with_scores = [KIND_TITLES[kind] for kind, attention in trace.attentions.items() if attention.scores is not None]
    facts |= {
        "scores before the mask": ", ".join(with_scores) or None,
        "mistake": trace.mistake,
        "edits": ", ".join(trace.edits) or None,
        "more arrays": ", ".join(trace.groups) or None,
        "measures": ", ".join(trace.attributions) or None,
        "inside of": ", ".join(inside.address for inside in trace.insides) or None,
    }
    facts |= {f"made by: {name}": value for name, value in trace.made_by.items()}
    rows = [(_note(name), _note(value)) for name, value in facts.items() if value is not None][:_MOST_NOTES]
    st.dataframe(pd.DataFrame(rows, columns=["what", "as the file says"]), hide_index=True)


def _note(value: Any) -> str:
    """A value of a file on one line; a long one is cut."""
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten(" ".join(words[: 2 * _LONGEST_NOTE].split()), _LONGEST_NOTE)


def _sizes_of(model: "LoadedModel") -> Iterator[str]:
    """What is known of a model that is not ours, in lines."""
    sizes = model.network.sizes
    layers = ", ".join(f"{len(sizes.layers[kind])} of {KIND_TITLES[kind]}" for kind in sizes.layers)
    in_force = ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in model.generation.items())
    if model.network.kind.writes:
        yield f"also decided by: {in_force or 'nothing'}"
    yield f"model: layers {layers}; {count_words(model.n_parameters, 'parameter')}, a vocabulary of {sizes.vocabulary:,}"


def _model(checkpoint: "Checkpoint") -> Iterator[str]:
    """How good the model is, and every preference that its training had about attention, in lines."""
    config, metrics = checkpoint.network.config, checkpoint.metrics
    yield (
        f"model: {config.n_encoder_layers}+{config.n_decoder_layers} layers, {config.n_heads} heads, "
        f"d_model {config.d_model}, {count_words(checkpoint.n_parameters, 'parameter')}"
    )
    if "exact_match" in metrics:
        mass = metrics.get("best_head_mass")
        best = "" if mass is None else f"; its best head has {percent_words(mass, 1)} of its weight on the right token"
        yield (
            f"on {metrics.get('samples', 0):,} {_JUDGED_BY.get(metrics.get('judged_by'), 'fresh texts')}: "
            f"{percent_words(metrics['exact_match'], 2)} exact{best}"
        )
    # Without this a reader would take sharpness for the model's own.
    if checkpoint.recipe.get("sharpness"):
        yield "Towards the end of training, cross-attention was made to prefer sharp rows. Where to look was never trained."
    else:
        yield "Nothing about attention was trained: the model found by itself where to look, and how sharply."
