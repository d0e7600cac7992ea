"""The weight of each key for what was written, by a measure of `methods/`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from transformer_viz.addresses import check_kind
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.methods.gradient import written_log_p
from transformer_viz.attribution.rerun import Run, Score
from transformer_viz.errors import OptionError, join_names
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.trace.attribution import KINDS_WITH_CAUSES, Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.progress import OnProgress


def attribute(
    model: LoadedModel,
    trace: Trace,
    method: str,
    *,
    mode: str = "word",
    kind: str | None = None,
    against: str | int | Sequence[str | int] | None = None,
    score: Score | None = None,
    on_progress: OnProgress | None = None,
) -> Attribution:
    """Measures how much each key mattered for each token that a run wrote, with the model that made the run.

    Args:
        model: the model, from `load_checkpoint` or `load_model`.
        trace: its run; edits and mistakes of it stay in force.
        method: `occlusion`, `gradient`, `rollout` …; docs/attribution.md has all of them.
        mode: how occlusion removes a token: `word` puts the unknown token in its place, `position` masks it for every query,
            `deleted` shortens the text by it.
        kind: whose keys: `cross`, the source tokens, or `decoder`, what the decoder has read; by default those of
            cross-attention, where there is any.
        against: why the written token *and not this one*: a token, or its id, or one for each step. Explained is the log of how
            many times as probable the written token is, in nats. `occlusion` and `gradient` can.
        score: a number of your own to explain: a function from log-probabilities, float64 (batch, step, vocabulary), and the
            ids that were written, int64 (step,), to the number of each step, (batch, step). `occlusion` and `gradient` can;
            the latter needs it to be differentiable.
        on_progress: is called before each pass of many with the share that is done, from 0 to 1; what it raises ends the work.

    Returns:
        An Attribution whose `values` are (layer, head, query, key), or (query, key) where the measure has no heads.

    Raises:
        OptionError: an impossible argument, a measure that this model cannot give, or a run of another model.
        DeviceError: the device ran out of memory.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> trace = tv.decode(model, "hello")
        >>> cause = tv.attribute(model, trace, "occlusion")
        >>> cause.values.shape  # (query, key)
        (6, 7)
        >>> contrast = tv.attribute(model, trace, "occlusion", against="h")  # why the written letter, and not h
        >>> contrast.unit
        'nats'
        >>> trace.source_tokens[cause.values[0].argmax()]  # what the first letter, o, was read from
        'o'

    References:
        Why this and not that: Yin & Neubig (2022), "Interpreting Language Models with Contrastive Explanations":
            https://arxiv.org/abs/2202.10419
        Occlusion: Li et al. (2016), "Understanding Neural Networks through Representation Erasure":
            https://arxiv.org/abs/1612.08220
        Gradient × attention: Chefer et al. (2021), "Generic Attention-model Explainability for Interpreting
            Bi-Modal and Encoder-Decoder Transformers": https://arxiv.org/abs/2103.15679
        Rollout: Abnar & Zuidema (2020), "Quantifying Attention Flow in Transformers":
            https://aclanthology.org/2020.acl-main.385
        ALTI+: Ferrando et al. (2022), "Towards Opening the Black Box of Neural Machine Translation":
            https://arxiv.org/abs/2205.11631
        Value-weighted norm: Kobayashi et al. (2020), "Attention is Not Only a Weight":
            https://arxiv.org/abs/2004.10102
    """
    if method not in METHODS:
        raise OptionError(f"method {method!r} is not known; choose one of {join_names(METHODS)}")
    chosen, there = METHODS[method], model.network.sizes.kinds
    if mode != "word" and mode not in chosen.modes:
        raise OptionError(f"mode {mode!r} is not one of {method}; it has {join_names(chosen.modes)}")
    possible = [attention_kind for attention_kind in KINDS_WITH_CAUSES if attention_kind in there]
    if not possible:
        raise OptionError(f"{model.name} writes nothing, so no key has caused anything; choose a model with a decoder")
    if kind not in (None, *possible):
        check_kind(kind, there, model.name)
        raise OptionError(f"kind {kind!r} has no causes in {model.name}; choose one of {join_names(possible)}")
    keys = next(attention_kind for attention_kind in possible if kind in (None, attention_kind))
    if chosen.follows_layers and model.network.sizes.recurrences:
        others = join_names(name for name, other in METHODS.items() if not other.follows_layers)
        raise OptionError(
            f"{method} follows attention through all layers, and the decoder of {model.name} has a recurrence in the place of "
            f"self-attention. Choose {others}."
        )
    asked = _contrast(model, trace, against) if score is None else score
    if asked is not None and not chosen.explains_scores:
        able = join_names(name for name, other in METHODS.items() if other.explains_scores)
        raise OptionError(f"{method} does not look at what is written, so it has no against and no score; choose one of {able}")
    if against is not None and score is not None:
        raise OptionError("against and score are two numbers to explain; give one of them")
    notes: dict[str, Any] = {"model": model.name}
    if against is not None:
        notes["against"] = [against] if isinstance(against, str | int) else list(against)
    with devices.running(model, has_gradients=True):
        run = Run.of(model, trace, on_progress)
        values = chosen.of(run if asked is None else replace(run, score=asked), keys, mode)
    return Attribution(
        method=method,
        kind=keys,
        values=values.detach().to("cpu", chosen.dtype).numpy(),
        mode=mode if chosen.modes else None,
        unit=chosen.unit if score is None else "",
        layers=tuple(model.network.sizes.layers[keys]) if values.ndim == 4 else (),
        notes=notes,
    )


def _contrast(model: LoadedModel, trace: Trace, against: str | int | Sequence[str | int] | None) -> Score | None:
    """The score of the written tokens against others; None where there are no others."""
    if against is None:
        return None
    tokens = [against] * trace.n_steps if isinstance(against, str | int) else list(against)
    if len(tokens) != trace.n_steps:
        raise OptionError(f"against has {len(tokens)} tokens for {trace.n_steps} steps; give one token, or one for each step")
    others = torch.tensor(model.tokenizer.ids_of("against: token", tokens), device=model.device)
    return lambda log_p, written: written_log_p(log_p, written) - written_log_p(log_p, others)
