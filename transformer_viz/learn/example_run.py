"""Makes the run that a lesson's link opens, with the data that its question needs; lessons are checked on these runs."""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from transformer_viz import edits as plain_edits
from transformer_viz.addresses import HeadAddress, check_kind
from transformer_viz.attribution.attribute import attribute
from transformer_viz.checkpoints import Checkpoint, find_name, load_checkpoint
from transformer_viz.errors import LessonError, join_names
from transformer_viz.inside_head.run import inspect_head
from transformer_viz.learn.lesson import Ask
from transformer_viz.learn.links import Link, read_link
from transformer_viz.learn.questions import CAUSE, Spot, spot_of
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.schema import Range, read_number
from transformer_viz.terms import MISTAKE_TITLES, Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.batch import decode_batch, decode_forced
from transformer_viz.tracing.decode import decode
from transformer_viz.training.replay import trace_training

_DECODING: dict[str, dict[str, tuple[str, type, Range]]] = {
    "greedy": {},
    "beam": {"beam": ("beam_size", int, Range(1, 64)), "alpha": ("length_penalty", float, Range(-10, 10))},
    "sample": {"temperature": ("temperature", float, Range(0, 100)), "seed": ("seed", int, Range(0, 2**31 - 1))},
}
"""For each decoding, the page's controls with their keywords of `decode` and the page's limits."""
DEFAULT_MODEL = "reverse"
"""The model that the app opens where a link names none."""
BEAM = 5
"""Hypotheses of a search that a link does not ask for."""


@dataclass(frozen=True)
class Example:
    """A run, the model that made it, and what its page has in focus."""

    model: LoadedModel
    trace: Trace
    focus: Spot


def load_model(name: str) -> Checkpoint:
    """A checkpoint by its name, on the CPU, as often as it is asked for; a lesson names no folder.

    Raises:
        CheckpointError: there is none of this name, or it is damaged.
    """
    return _load(str(find_name(name)))


@cache
def _load(folder: str) -> Checkpoint:
    return load_checkpoint(folder, "cpu")


def example_of(address: str, *, is_of_writing: bool = False) -> Example | None:
    """The run of an address such as `/?text=hello`, as often as it is asked for."""
    return _example(address, is_of_writing, folder_of(read_link(address)))


def folder_of(link: Link) -> str:
    """The folder of a link's model: in another folder one of the same name is another model."""
    return str(find_name(link.values.get("checkpoint", DEFAULT_MODEL)))


@lru_cache(maxsize=64)
def _example(address: str, is_of_writing: bool, _folder: str) -> Example | None:
    return example_run(read_link(address), is_of_writing=is_of_writing)


def example_run(link: Link, *, is_of_writing: bool = False) -> Example | None:
    """The run that a link opens; None of a page that shows none.

    Args:
        link: of the app.
        is_of_writing: at a snapshot of a training, and on Masks: the run that writes, instead of the one that reads the target.

    Raises:
        LessonError: the link names what this run does not have.
        TransformerVizError: there is no such checkpoint, or it cannot read the text.
    """
    if link.page == "survey":
        return None
    values, model = link.values, load_model(link.values.get("checkpoint", DEFAULT_MODEL))
    text = values.get("text") or model.task.examples()[0].text
    if link.page == "masks":
        trace = _sentence(link, model, is_of_writing=is_of_writing)
    elif "moment" in values:
        moments = {str(moment.step): moment for moment in trace_training(model, text)}
        if values["moment"] not in moments:
            raise LessonError(f"moment={values['moment'][:20]!r} is not possible; {model.name} has {join_names(moments)}")
        moment = moments[values["moment"]]
        trace = moment.written if is_of_writing else moment.forced
    else:
        trace = decode(model, text, **_keywords(link))
    return Example(model, trace, _focus(link, model, trace))


def measured(example: Example, ask: Ask) -> Trace:
    """The run with what a question reads beside the weights: the cause, the inside of a head, or a search.

    Raises:
        TransformerVizError: the model cannot give it.
    """
    model, trace, spot = example.model, example.trace, spot_of(ask, example.focus)
    if ask.kind == "matters-most" and CAUSE not in trace.attributions:
        return trace.with_attribution(attribute(model, trace, "occlusion", mode="word", kind="cross"))
    if ask.kind == "greedy-or-beam" and trace.search is None:
        return decode(model, trace.source, strategy="beam", beam_size=BEAM)
    has_row = spot.kind in trace.kinds and spot.row < len(trace.attentions[spot.kind].queries)
    if ask.kind == "number" and ask.number not in ("weight", "probability") and has_row and isinstance(spot.head, int):
        return trace.with_inside(inspect_head(model, trace, HeadAddress(spot.kind, spot.layer, spot.head), spot.row))
    return trace


def _keywords(link: Link) -> dict[str, Any]:
    """The link's decoding, as keywords of `decode`."""
    strategy = link.values.get("decoding", "greedy")
    if strategy == "forced":
        return {"target": link.values["forced_target"]} if link.values.get("forced_target") else {}
    if strategy not in _DECODING:
        raise LessonError(f"decoding={strategy[:20]!r} is not possible; it is one of {join_names(_DECODING)}, forced")
    controls = {name: control for name, control in _DECODING[strategy].items() if name in link.values}
    given = {of: read_number(kind, limits, link.values[name]) for name, (of, kind, limits) in controls.items()}
    return {"strategy": strategy, **given}


def _sentence(link: Link, model: Checkpoint, *, is_of_writing: bool) -> Trace:
    """The sentence in focus of the batch of the page Masks, as the change makes it."""
    values, mistake = link.values, link.values.get("mistake", "")
    if not values.get("sources"):
        raise LessonError("a link to masks has to name its sentences: /masks?sources=hello%0Aab")
    named = next((name for name, title in MISTAKE_TITLES.items() if mistake in (name, title)), None)
    if mistake and named is None:
        raise LessonError(f"mistake={mistake[:40]!r} is not known; choose one of {join_names(MISTAKE_TITLES)}")
    edits = tuple(map(str, plain_edits.parse(values.get("edits", ""))))
    sources = values["sources"].split("\n")
    targets = [line or None for line in values["targets"].split("\n")] if values.get("targets") else None
    if is_of_writing:
        traces = decode_batch(model, sources, edits=edits, mistake=named)
    else:
        traces = decode_forced(model, sources, targets, edits=edits, mistake=named)
    number = link.number("sentence") or 1
    if number > len(traces):
        raise LessonError(f"sentence={number} is not possible; the link names {len(traces)} sentences")
    return traces[number - 1]


def _focus(link: Link, model: Checkpoint, trace: Trace) -> Spot:
    """The focus of the page, by the link or as it opens."""
    values = link.values
    if "kind" in values:
        check_kind(link.kind or values["kind"][:40], trace.kinds, error=LessonError)
    kind: Kind = link.kind or ("cross" if "cross" in trace.kinds else trace.kinds[0])
    best = model.metrics.get("best_head") if kind == "cross" else None
    layer, head = (best["layer"], best["head"]) if best else (0, 0)
    layer = layer if (said := link.number("layer")) is None else said - 1
    head = head if link.head is None else link.head
    attention = trace.attentions[kind]
    if layer not in attention.layers or (isinstance(head, int) and not 0 <= head < attention.n_heads):
        raise LessonError(f"layer {layer + 1} head {values.get('head', head)} is not in this run; it has {attention.n_layers} "
                          f"layers of {attention.n_heads} heads")  # fmt: skip
    step = link.number("step") or 1
    if step > max(1, len(trace.rows)):
        raise LessonError(f"step={step} is not possible; this run has {len(trace.rows)} steps")
    return Spot(kind, layer, head, step - 1)
