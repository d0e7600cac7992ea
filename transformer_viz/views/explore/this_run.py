"""The small line below the pictures: the model, its accuracy and the settings of this run; for a file, what the file says."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from transformer_viz.language import enumerated, later, say
from transformer_viz.numbers_in_words import count_words, duration_words, percent_words
from transformer_viz.sentences.run_sentences import step_name
from transformer_viz.terms import kind_words
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


_ENDED = {"end": later("with the end symbol"), "length": later("at the length limit"), "given": later("the tokens were given")}
_JUDGED_BY = {"held-out": later("texts that training never saw"), "trained": later("texts, the same that it was trained on")}


def show(shown: Shown) -> None:
    """Draws a line that opens: with what is known of the model, or with the notes of a file."""
    trace = shown.tokens
    if shown.model is None:
        with st.expander(say(":small[What the file says of its run]"), type="compact"):
            _notes(trace)
        return
    part, made_by, seconds = limits.words_of(trace.made_by), trace.made_by, trace.made_by.get("seconds")
    name: dict[str, Any] = {"name": made_by.get("checkpoint"), "variant": made_by.get("variant")}
    about = [say("checkpoint {name} ({variant})", **name) if "task" in made_by else say("model {name} ({variant})", **name)]
    about += [say("task {task}", task=made_by["task"])] if "task" in made_by else []
    device, strategy = made_by.get("device"), say(str(made_by.get("strategy")))
    about.append(
        say("{strategy} decoding on {device}", strategy=strategy, device=device)
        if trace.writes
        else say("read on {device}", device=device)
    )
    if isinstance(seconds, int | float):
        steps = count_words(len(trace.rows), step_name(trace))
        about.append(say("{time} for {steps}", time=duration_words(seconds), steps=steps))
    words = enumerated(about)
    words = say("{run}; kept: {part}", run=words, part=part) if part else words
    with st.expander(say(":small[This run: {words}]", words=literal(words)), type="compact"):
        limits.caption(shown.whole or trace)
        lines = _model(shown.checkpoint) if shown.checkpoint is not None else _sizes_of(shown.model)
        # Together: each further text is 1.5 ms of an Enter.
        st.text("\n".join(lines))


def _notes(trace: Trace) -> None:
    """Draws what a file says of its run, as text: nobody has checked it."""
    with_answer = display_options.current().with_answer
    facts: dict[str, Any] = {
        say("source"): display_text(trace.source),
        say("written"): display_text(trace.text) if with_answer and trace.writes else None,
        say("right answer"): display_text(trace.expected) if with_answer and trace.expected is not None else None,
        say("tokens of the prompt"): trace.n_given + 1 if trace.n_given else None,
        say("ended"): say(_ENDED[trace.finished]) if trace.writes else None,
        say("guesses at mask tokens"): len(trace.fills) or None,
    }
    for kind, attention in trace.attentions.items():
        facts[kind_words(kind)] = _shape_words(*attention.weights.shape)
    with_scores = [kind_words(kind) for kind, attention in trace.attentions.items() if attention.scores is not None]
    facts |= {
        say("scores before the mask"): ", ".join(with_scores) or None,
        say("mistake"): trace.mistake,
        say("edits"): ", ".join(trace.edits) or None,
        say("more arrays"): ", ".join(trace.groups) or None,
        say("measures"): ", ".join(trace.attributions) or None,
        say("inside of"): ", ".join(inside.address for inside in trace.insides) or None,
    }
    facts |= {say("made by: {name}", name=name): value for name, value in trace.made_by.items()}
    rows = [(_note(name), _note(value)) for name, value in facts.items() if value is not None][:_MOST_NOTES]
    st.dataframe(pd.DataFrame(rows, columns=[say("what"), say("as the file says")]), hide_index=True)


def _shape_words(layers: int, heads: int, queries: int, keys: int) -> str:
    shape = {"layers": layers, "heads": heads, "queries": queries, "keys": keys}
    return say("{layers} × {heads} heads, {queries} × {keys} tokens", **shape)


def _note(value: Any) -> str:
    """A value of a file on one line; a long one is cut."""
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten(" ".join(words[: 2 * _LONGEST_NOTE].split()), _LONGEST_NOTE)


def _sizes_of(model: "LoadedModel") -> Iterator[str]:
    """Yields what is known of a model that is not ours, in lines."""
    sizes = model.network.sizes
    layers = enumerated(say("{count} of {kind}", count=len(sizes.layers[kind]), kind=kind_words(kind)) for kind in sizes.layers)
    in_force = ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in model.generation.items())
    if model.network.kind.writes:
        yield say("also decided by: {what}", what=in_force or say("nothing"))
    n = count_words(model.n_parameters, "parameter")
    yield say("model: layers {layers}; {parameters}, a vocabulary of {n:,}", layers=layers, parameters=n, n=sizes.vocabulary)


def _model(checkpoint: "Checkpoint") -> Iterator[str]:
    """Yields how good the model is, and every preference that its training had about attention, in lines."""
    config, metrics = checkpoint.network.config, checkpoint.metrics
    yield say(
        "model: {encoder}+{decoder} layers, {heads} heads, d_model {width}, {parameters}",
        encoder=config.n_encoder_layers,
        decoder=config.n_decoder_layers,
        heads=config.n_heads,
        width=config.d_model,
        parameters=count_words(checkpoint.n_parameters, "parameter"),
    )
    if "exact_match" in metrics:
        mass = metrics.get("best_head_mass")
        judged: dict[str, Any] = {
            "n": metrics.get("samples", 0),
            "texts": say(_JUDGED_BY.get(metrics.get("judged_by"), later("fresh texts"))),
            "share": percent_words(metrics["exact_match"], 2),
        }
        yield (
            say("on {n:,} {texts}: {share} exact", **judged)
            if mass is None
            else say(
                "on {n:,} {texts}: {share} exact; its best head has {mass} of its weight on the right token",
                mass=percent_words(mass, 1),
                **judged,
            )
        )
    # Without this a reader would take sharpness for the model's own.
    if checkpoint.recipe.get("sharpness"):
        yield say(
            "Towards the end of training, cross-attention was made to prefer sharp rows. Where to look was never trained."
        )
    else:
        yield say("Nothing about attention was trained: the model found by itself where to look, and how sharply.")
