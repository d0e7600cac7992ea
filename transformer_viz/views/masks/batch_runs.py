"""The runs behind the Masks page, shared by all sessions, and the queue in which the long ones stand."""

from collections.abc import Hashable
from typing import Any

import streamlit as st

from transformer_viz.loaded_model import LoadedModel
from transformer_viz.mask_checks.check_masks import check_masks
from transformer_viz.mask_checks.effect import DecodedTexts, EffectInProgress, fresh_strings, texts_from_person
from transformer_viz.mask_checks.result import MaskReport
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.batch import decode_batch, read_batch, written_target
from transformer_viz.views.cache import computing
from transformer_viz.views.cache.limits import MAX_TRACE_BYTES
from transformer_viz.views.cache.model_list import identity
from transformer_viz.views.cache.runs import cost_of
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.masks.batch import Typed

_CHECKED = (6_000, 100_000)
"""Tokens that a check reads, roughly: of texts, and of a task's pairs."""
MOST_WRITTEN = 20
"""Tokens for each of many texts: some models seldom end by themselves."""


def decoded(model: LoadedModel, typed: Typed, edits: tuple[str, ...] = (), mistake: str | None = None) -> list[Trace]:
    """What the model writes for each source, decoded as one padded batch with its padding kept."""
    changed: Any = {"edits": edits, "mistake": mistake, "max_trace_bytes": MAX_TRACE_BYTES}
    traces = computing.decode(cost_of(model, typed.sources), decode_batch, model, typed.sources, **changed)
    return record(traces, Call(decode_batch, model, sources_of(typed), **changed))


def forced(model: LoadedModel, typed: Typed, edits: tuple[str, ...] = (), mistake: str | None = None) -> list[Trace]:
    """One pass over sources and targets, with scores and with the padding of both sides kept."""
    # What `read_batch` would decode for itself, from the cache.
    written = decoded(model, typed)
    targets = tuple(
        written_target(one) if target is None else target for one, target in zip(written, typed.targets, strict=True)
    )
    cost = cost_of(model, typed.sources, **({"target": targets} if model.model.kind.writes else {}))
    changed: Any = {"edits": edits, "mistake": mistake, "max_trace_bytes": MAX_TRACE_BYTES}
    traces = computing.compute("Reading the texts", cost, read_batch, model, typed.sources, targets, **changed)
    return record(traces, Call(read_batch, model, sources_of(typed), targets_of(typed), **changed))


def sources_of(typed: Typed) -> Call:
    """As “Show the code” has them: in a variable."""
    return Call("sources = {}", [*typed.sources])


def targets_of(typed: Typed) -> Call | None:
    """The targets, in a variable; None where the model writes by itself, which is `read_batch`'s default."""
    return Call("targets = {}", [*typed.targets]) if any(typed.targets) else None


def report(model: LoadedModel, texts: tuple[str, ...] | None, edits: tuple[str, ...], mistake: str | None) -> MaskReport:
    """The certificate."""
    words, cost = "Replacing what must not be seen", float(_CHECKED[model.task is not None] * model.n_parameters)
    return computing.compute(words, cost, check_masks, model, texts=texts, edits=edits, mistake=mistake)


def over_many(
    model: LoadedModel, texts: tuple[str, ...] | None, edits: tuple[str, ...], mistake: str | None
) -> EffectInProgress:
    """The effect over many strings, fresh ones of the task or a person's texts, as far as somebody has decoded them."""
    return _over_many(identity(model), texts, edits, mistake, model)


@st.cache_resource(max_entries=128, show_spinner=False)
def _over_many(
    name: Hashable, texts: tuple[str, ...] | None, edits: tuple[str, ...], mistake: str | None, _model: LoadedModel
) -> EffectInProgress:
    return EffectInProgress(_model, _strings(name, texts, _model), edits=edits, mistake=mistake)


@st.cache_resource(max_entries=6, show_spinner=False)
def _strings(name: Hashable, texts: tuple[str, ...] | None, _model: LoadedModel) -> DecodedTexts:
    return fresh_strings(_model) if texts is None else texts_from_person(_model, texts, most_written(_model))


def most_written(model: LoadedModel) -> int:
    """How many tokens are written for each of many texts, at most."""
    return min(MOST_WRITTEN, model.default_max_length)
