"""Several texts as one padded batch, with the padding kept in every Trace: what the Masks page shows."""

from collections.abc import Iterable, Sequence
from typing import Any

from transformer_viz.edits import Edit
from transformer_viz.errors import InputError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.text_display import quote_text
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.progress import OnToken
from transformer_viz.tracing.tokenize_batch import Target, ids_of_target


def decode_batch(
    model: LoadedModel,
    sources: Sequence[str],
    *,
    edits: Iterable[Edit | str] = (),
    mistake: str | None = None,
    max_length: int | None = None,
    max_trace_bytes: int | None = None,
    on_token: OnToken | None = None,
) -> list[Trace]:
    """Decodes several sources as one batch, each padded to the longest: prompts on the left, an encoder's sources on the right.

    `decode` takes a list too, and cuts the padding from each Trace.

    Args:
        model: from `load_checkpoint` or `load_model`.
        sources: a list of source texts.
        edits: as in `decode`.
        mistake: as in `decode`.
        max_length: as in `decode`; None is its default.
        max_trace_bytes: as in `decode`.
        on_token: as in `decode`.

    Returns:
        A Trace for each text, with the padding in it.

    Raises:
        InputError: a text that cannot be read, none at all, or one text instead of a list.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> runs = tv.decode_batch(model, ["hello", "ab"])
        >>> [run.text for run in runs]
        ['olleh', 'ba']
        >>> runs[1].source_tokens
        ('<start>', 'a', 'b', '<end>', '<pad>', '<pad>', '<pad>')
    """
    _check_list(sources)
    return decode(
        model,
        list(sources),
        pad_to=_width(model, sources),
        edits=edits,
        mistake=mistake,
        max_length=max_length,
        max_trace_bytes=max_trace_bytes,
        on_token=on_token,
    )


def decode_forced(
    model: LoadedModel,
    sources: Sequence[str],
    targets: Sequence[Target | None] | None = None,
    *,
    edits: Iterable[Edit | str] = (),
    mistake: str | None = None,
    max_trace_bytes: int | None = None,
) -> list[Trace]:
    """Reads sources and targets in one pass (teacher forcing), both padded to their longest, with scores.

    An encoder alone has no targets, and reads its sources.

    Args:
        model: from `load_checkpoint` or `load_model`.
        sources: a list of source texts.
        targets: one for each source, as text or as tokens without the end; None is what the model writes without edits and
            mistake, so that their effect shows on the same words.
        edits: as in `decode`.
        mistake: as in `decode`.
        max_trace_bytes: as in `decode`; None is its default.

    Returns:
        A Trace for each text, with scores.

    Raises:
        InputError: a text that cannot be read, none at all, one text instead of a list, or not one target for each source.
        OptionError: a target for an encoder alone.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> [run] = tv.decode_forced(model, ["hello"], ["olleh"])
        >>> run.cross.scores.shape  # (layer, head, query, key)
        (2, 4, 6, 7)
    """
    _check_list(sources)
    given = [None] * len(sources) if targets is None else list(targets)
    if len(given) != len(sources):
        raise InputError(
            f"{len(sources)} sources and {len(given)} targets are given. Give one target for each source, or None."
        )
    changed: Any = {"edits": edits, "mistake": mistake, "record": ("weights", "scores"), "max_trace_bytes": max_trace_bytes}
    if not model.network.kind.writes and not any(given):
        return decode(model, list(sources), pad_to=_width(model, sources), **changed)
    if any(target is None for target in given):
        written = decode_batch(model, sources, max_trace_bytes=max_trace_bytes)
        given = [written_target(trace) if target is None else target for target, trace in zip(given, written, strict=True)]
    target = [target for target in given if target is not None]
    n_steps = 1 + max((len(ids_of_target(model, target_text)) for target_text in target), default=0)
    return decode(model, list(sources), target=target, pad_to=_width(model, sources), pad_target_to=n_steps, **changed)


def written_target(trace: Trace) -> tuple[str | int, ...]:
    """The written tokens without the end; where the limit stopped them, without the last, so that an end still fits."""
    return (trace.output_ids or trace.output_tokens)[trace.written][:-1]


def _check_list(sources: Sequence[str]) -> None:
    if isinstance(sources, str):
        raise InputError(f"sources is one text, {quote_text(sources, 40)}; a list of texts is needed")


def _width(model: LoadedModel, sources: Sequence[str]) -> int:
    if not sources:
        raise InputError("There is no source text. Give at least one.")
    return max(len(model.tokenizer.encode_source(source)) for source in sources)
