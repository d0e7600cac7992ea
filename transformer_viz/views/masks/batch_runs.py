"""The runs behind the Masks page, shared by all sessions, and the queue in which the long ones stand."""

from typing import Any

import streamlit as st

from transformer_viz.analysis.mask_report import MaskReport
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.mask_checks.check_masks import check_masks
from transformer_viz.mask_checks.effect import EffectInProgress, FreshStrings, GivenTexts, Strings
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.framing import Target
from transformer_viz.tracing.padded import decode_batch, own_target, read_batch
from transformer_viz.tracing.watching import OnProgress, OnToken
from transformer_viz.views.cache import watched
from transformer_viz.views.cache.limits import MAX_TRACE_BYTES
from transformer_viz.views.cache.run_cache import held
from transformer_viz.views.cache.runs import Identity, cost_of, identity
from transformer_viz.views.masks.batch import Typed

_EFFECTS, _STRINGS = 128, 6
_CHECKED = (6_000, 100_000)
"""Tokens that a check reads, roughly: of texts, and of a task's pairs."""
MOST_WRITTEN = 20
"""Tokens for each of many texts: some models seldom end by themselves."""


def decoded(model: LoadedModel, typed: Typed, edits: tuple[str, ...] = (), mistake: str | None = None) -> list[Trace]:
    """What the model writes for each source, decoded as one padded batch with its padding kept."""
    cost = cost_of(model, typed.sources)
    return watched.decoded(_decoded, cost, _name(model), typed.sources, edits, mistake, MAX_TRACE_BYTES, _model=model)


def forced(model: LoadedModel, typed: Typed, edits: tuple[str, ...] = (), mistake: str | None = None) -> list[Trace]:
    """One pass over sources and targets, with scores and with the padding of both sides kept."""
    # What `read_batch` would decode for itself, from the cache.
    written = decoded(model, typed)
    given = tuple(own_target(one) if target is None else target for one, target in zip(written, typed.targets, strict=True))
    cost = cost_of(model, typed.sources, (("target", given),) if model.model.sizes.writes else ())
    changed, words = (edits, mistake, MAX_TRACE_BYTES), "Reading the texts"
    return watched.computed(words, _forced, cost, _name(model), typed.sources, given, *changed, _model=model)


def report(model: LoadedModel, texts: tuple[str, ...] | None, edits: tuple[str, ...], mistake: str | None) -> MaskReport:
    """The certificate."""
    words, cost = "Replacing what must not be seen", float(_CHECKED[model.task is not None] * model.n_parameters)
    return watched.computed(words, _report, cost, _name(model), texts, edits, mistake, _model=model)


def over_many(
    model: LoadedModel, texts: tuple[str, ...] | None, edits: tuple[str, ...], mistake: str | None
) -> EffectInProgress:
    """The effect over many strings, fresh ones of the task or a person's texts, as far as somebody has decoded them."""
    return _over_many(_name(model), texts, edits, mistake, model)


def most_written(model: LoadedModel) -> int:
    """Tokens that are written for each of many texts."""
    return min(MOST_WRITTEN, model.default_max_length)


def _name(model: LoadedModel) -> Identity:
    return identity(model, model.device.type)


@held
def _decoded(
    name: Identity,
    sources: tuple[str, ...],
    edits: tuple[str, ...],
    mistake: str | None,
    most: int,
    *,
    _model: LoadedModel,
    max_length: int | None = None,
    _on_token: OnToken | None = None,
) -> list[Trace]:
    options: Any = {"max_length": max_length, "max_trace_bytes": most, "on_token": _on_token}
    return decode_batch(_model, sources, edits=edits, mistake=mistake, **options)


@held
def _forced(
    name: Identity,
    sources: tuple[str, ...],
    targets: tuple[Target, ...],
    edits: tuple[str, ...],
    mistake: str | None,
    most: int,
    *,
    _model: LoadedModel,
) -> list[Trace]:
    return read_batch(_model, sources, targets, edits=edits, mistake=mistake, max_trace_bytes=most)


@held
def _report(
    name: Identity,
    texts: tuple[str, ...] | None,
    edits: tuple[str, ...],
    mistake: str | None,
    *,
    _model: LoadedModel,
    _on_progress: OnProgress | None = None,
) -> MaskReport:
    return check_masks(_model, texts=texts, edits=edits, mistake=mistake, on_progress=_on_progress)


@st.cache_resource(max_entries=_EFFECTS, show_spinner=False)
def _over_many(
    name: Identity, texts: tuple[str, ...] | None, edits: tuple[str, ...], mistake: str | None, _model: LoadedModel
) -> EffectInProgress:
    return EffectInProgress(_model, _strings(name, texts, _model), edits=edits, mistake=mistake)


@st.cache_resource(max_entries=_STRINGS, show_spinner=False)
def _strings(name: Identity, texts: tuple[str, ...] | None, _model: LoadedModel) -> Strings:
    if texts is None:
        return FreshStrings(_model)
    return GivenTexts(_model, texts, most_written(_model))
