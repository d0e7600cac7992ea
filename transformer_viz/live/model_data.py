"""A checkpoint as data for the engine of a live page: sizes, vocabularies, how texts are read, and packed weights."""

import base64
import gzip
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from torch import Tensor

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import InputError, OptionError, join_names
from transformer_viz.language import known, later, say
from transformer_viz.numbers_in_words import count_words
from transformer_viz.tasks.copy import Copy
from transformer_viz.tasks.dates import Dates
from transformer_viz.tasks.letters import Letters
from transformer_viz.tasks.numbers import Numbers
from transformer_viz.tasks.pinyin import Pinyin
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.tasks.shift import Shift
from transformer_viz.tasks.sort import Sort
from transformer_viz.tasks.task import Task
from transformer_viz.tasks.toys import Sentences
from transformer_viz.tasks.translation import Translation

WeightPrecision = Literal["int16", "float32"]
WEIGHT_PRECISIONS: tuple[WeightPrecision, ...] = ("int16", "float32")
MOST_PARAMETERS = 20_000_000
_LARGEST_INT16 = 32767
# By the function that reads a text: a task that has one of its own is read in a way that the engine does not know.
_CUTS: Mapping[Callable[..., Any], tuple[str, str]] = {
    Letters.read: ("characters", later("characters")),
    Dates.read: ("characters", later("characters")),
    Pinyin.read: ("characters", later("characters")),
    Sentences.read: ("words", later("words")),
    Translation.read: ("sentence", later("words and marks")),
    Numbers.read: ("morphemes", later("parts of number words")),
}
_BETWEEN: Mapping[Callable[..., Any], str] = {
    Task.join: "",
    Pinyin.join: " ",
    Sentences.join: " ",
    Translation.join: " ",
}
_ORDERS: Mapping[type[Task], str] = {Reverse: "reverse", Copy: "copy", Shift: "shift", Sort: "sort", Pinyin: "copy"}
"""Tasks of which a rule says which symbol of the source each step must look at."""


def model_data(checkpoint: Checkpoint, precision: WeightPrecision = "int16") -> dict[str, Any]:
    """Packs a model for the engine, ready for JSON.

    Args:
        checkpoint: on the CPU or not.
        precision: `int16` keeps each matrix as whole numbers of 16 bits with one scale a row, which changes the attention of
            the shipped models by less than 0.0005; `float32` keeps every number as it is, in twice the size.

    Raises:
        OptionError: not a checkpoint of this program, too many parameters, a task that the engine cannot read, or another
            precision.
    """
    if precision not in WEIGHT_PRECISIONS:
        raise OptionError(f"precision {precision!r} is not possible; choose one of {join_names(WEIGHT_PRECISIONS)}")
    if not isinstance(checkpoint, Checkpoint):
        raise OptionError(
            "A live page runs checkpoints of this program, as `train` makes them; a model of Hugging Face or of a translation "
            "engine is not possible. Export a page of one run instead."
        )
    if checkpoint.n_parameters > MOST_PARAMETERS:
        raise OptionError(
            f"{checkpoint.name} has {count_words(checkpoint.n_parameters, 'parameter')}; a live page runs models of at most "
            f"{MOST_PARAMETERS:,}, so that it opens and answers at once. Export a page of one run instead."
        )
    config, task = checkpoint.network.config, checkpoint.task
    # How texts are cut into tokens, and tokens joined to a text.
    cut, between = _CUTS.get(type(task).read), _BETWEEN.get(type(task).join)
    if cut is None or between is None:
        raise OptionError(
            f"The task {task.name!r} reads or writes texts in a way of its own, which a live page does not know. "
            "Export a page of one run instead."
        )
    return {
        "name": checkpoint.name,
        "variant": checkpoint.variant,
        "task": task.name,
        "config": config.to_json(),
        "source": list(task.source_vocabulary.tokens),
        "target": list(task.target_vocabulary.tokens),
        "reading": {
            "cut": cut[0],
            "unit": say(cut[1]),
            "between": between,
            "most": min(task.max_length, config.max_positions - 2),
            "longest": checkpoint.default_max_length,
            "example": task.examples()[0].text,
            "isBlankText": _reads(task, " "),
            **({"refused": [task.refused, known(task.why_refused)]} if isinstance(task, Translation) and task.refused else {}),
            "answer": _answer(task),
        },
        "weights": packed_weights(checkpoint.network.state_dict(), precision),
    }


def packed_weights(tensors: Mapping[str, Tensor], precision: WeightPrecision) -> dict[str, Any]:
    """Packs all numbers of a model, gzipped, as base64: of each tensor its name, `i2` or `f4`, and its shape, and its bytes.

    A matrix of int16 has the float32 scales of its rows before its numbers. Vectors, of which there are few, stay float32.
    """
    described, parts = [], []
    for name, tensor in tensors.items():
        array = tensor.detach().cpu().numpy().astype("<f4")
        if precision == "float32" or array.ndim < 2:
            described.append([name, "f4", list(array.shape)])
            parts.append(array.tobytes())
            continue
        scales = np.abs(array).max(-1, keepdims=True) / np.float32(_LARGEST_INT16)
        whole = np.rint(array / np.where(scales > 0, scales, 1)).astype("<i2")
        described.append([name, "i2", list(array.shape)])
        parts += [scales.astype("<f4").tobytes(), whole.tobytes(), bytes(-whole.nbytes % 4)]
    data = gzip.compress(b"".join(parts), 9, mtime=0)
    return {"data": base64.b64encode(data).decode(), "tensors": described}


def _reads(task: Task, text: str) -> bool:
    try:
        task.read(text)
    except InputError:
        return False
    return True


def _answer(task: Task) -> dict[str, Any]:
    """The right answers for the page: a rule, and the answers to the examples, or to all texts of a task that has few."""
    texts = list(task.pairs()) if isinstance(task, Sentences) else [example.text for example in task.examples()]
    known = {}
    for symbols in map(task.read, texts):
        if (answer := task.answer(symbols)) is not None:
            known[" ".join(symbols)] = {"expected": answer, "alignment": task.alignment(symbols, len(answer))}
    rule = {"order": order, "isAnswer": type(task) is not Pinyin} if (order := _ORDERS.get(type(task))) else {}
    return {**rule, **({"by": task.by} if isinstance(task, Shift) else {}), "known": known}
