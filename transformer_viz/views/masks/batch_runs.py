"""The runs behind the Masks page, shared by all sessions, and the queue in which the long ones stand."""

import streamlit as st

from transformer_viz.analysis.mask_report import MaskReport
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.mask_checks.check_masks import check_masks
from transformer_viz.mask_checks.effect import EffectInProgress, FreshStrings, GivenTexts, Strings
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.padded import decode_batch, own_target, read_batch
from transformer_viz.views.cache.limits import MAX_TRACE_BYTES
from transformer_viz.views.cache.run_cache import held
from transformer_viz.views.cache.runs import ONE_AT_A_TIME, Identity, identity
from transformer_viz.views.masks.batch import Typed

_REPORTS, _STRINGS = 128, 6
MOST_WRITTEN = 20
"""Tokens for each of many texts: some models seldom end by themselves."""


def decoded(model: LoadedModel, typed: Typed, edits: tuple[str, ...] = (), mistake: str | None = None) -> list[Trace]:
    """What the model writes for each source, decoded as one padded batch with its padding kept."""
    return _decoded(_name(model), typed.sources, edits, mistake, model)


def forced(model: LoadedModel, typed: Typed, edits: tuple[str, ...] = (), mistake: str | None = None) -> list[Trace]:
    """One pass over sources and targets, with scores and with the padding of both sides kept."""
    return _forced(_name(model), typed.sources, typed.targets, edits, mistake, model)


def report(model: LoadedModel, texts: tuple[str, ...] | None, edits: tuple[str, ...], mistake: str | None) -> MaskReport:
    """The certificate."""
    return _report(_name(model), texts, edits, mistake, model)


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
    name: Identity, sources: tuple[str, ...], edits: tuple[str, ...], mistake: str | None, _model: LoadedModel
) -> list[Trace]:
    return decode_batch(_model, sources, edits=edits, mistake=mistake, max_trace_bytes=MAX_TRACE_BYTES)


@held
def _forced(
    name: Identity,
    sources: tuple[str, ...],
    targets: tuple[str | None, ...],
    edits: tuple[str, ...],
    mistake: str | None,
    _model: LoadedModel,
) -> list[Trace]:
    # What `read_batch` would decode for itself, from the cache.
    written = _decoded(name, sources, (), None, _model)
    given = [own_target(trace) if target is None else target for trace, target in zip(written, targets, strict=True)]
    return read_batch(_model, sources, given, edits=edits, mistake=mistake, max_trace_bytes=MAX_TRACE_BYTES)


@st.cache_resource(max_entries=_REPORTS, show_spinner="Replacing what must not be seen …")
def _report(
    name: Identity,
    texts: tuple[str, ...] | None,
    edits: tuple[str, ...],
    mistake: str | None,
    _model: LoadedModel,
) -> MaskReport:
    with ONE_AT_A_TIME:
        return check_masks(_model, texts=texts, edits=edits, mistake=mistake)


@st.cache_resource(max_entries=_REPORTS, show_spinner=False)
def _over_many(
    name: Identity, texts: tuple[str, ...] | None, edits: tuple[str, ...], mistake: str | None, _model: LoadedModel
) -> EffectInProgress:
    return EffectInProgress(_model, _strings(name, texts, _model), edits=edits, mistake=mistake)


@st.cache_resource(max_entries=_STRINGS, show_spinner=False)
def _strings(name: Identity, texts: tuple[str, ...] | None, _model: LoadedModel) -> Strings:
    if texts is None:
        return FreshStrings(_model)
    return GivenTexts(_model, texts, most_written(_model))
