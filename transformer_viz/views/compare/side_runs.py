"""Makes the runs of the two sides of Compare: a Trace each, or an error that leaves the other side alone."""

from dataclasses import dataclass

from transformer_viz.errors import InputError, TransformerVizError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache import model_list, runs
from transformer_viz.views.compare.sides import Asked
from transformer_viz.views.components import opened
from transformer_viz.vocabulary import END


@dataclass(frozen=True)
class Ran:
    """One side's outcome: a trace, or an error."""

    trace: Trace | None
    error: str | None = None
    is_empty: bool = False
    """Whether nothing was typed, which is no mistake yet."""


def both(a: Asked, b: Asked, device: str) -> tuple[Ran, Ran]:
    """Runs what has to run; a side that reads the other one's output comes after it."""
    if a.reads_the_other and b.reads_the_other:
        words = "Each side reads what the other one writes. Let one of them write by itself."
        return Ran(None, words), Ran(None, words)
    if a.reads_the_other:
        second = _ran(b, device, None)
        return _ran(a, device, second.trace), second
    first = _ran(a, device, None)
    return first, _ran(b, device, first.trace)


def target_of(other: Trace, model: LoadedModel) -> str | tuple[str, ...]:
    """What a side that reads the other's output is given: its tokens without `<end>`; where tokens are a tokenizer's own
    matter, its text."""
    if model.task is None:
        return other.text
    return tuple(token for token in other.output_tokens if token != END)


def _ran(asked: Asked, device: str, other: Trace | None) -> Ran:
    if asked.file is not None:
        return Ran(opened.get(asked.file).trace)
    try:
        return Ran(_decoded(asked, device, other))
    except TransformerVizError as error:
        return Ran(None, str(error), is_empty=not asked.text)


def _decoded(asked: Asked, device: str, other: Trace | None) -> Trace:
    model = model_list.load_any(asked.checkpoint, device)
    how = asked.keywords()
    if asked.reads_the_other:
        # What is wrong with its own text is said first.
        model.tokenizer.encode_source(asked.text)
        if other is None:
            raise InputError("This side reads what the other side writes, and the other side could not be run.")
        if not other.output_tokens:
            raise InputError(
                "This side reads what the other side writes, and the other side's file does not say what was written."
            )
        how["target"] = target_of(other, model)
    return runs.side(model, asked.text, asked.snapshot, tuple(how.items()))
