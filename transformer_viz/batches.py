"""Runs many texts through a model in batches, records attention, and compares the outputs with known answers."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from transformer_viz.decoding import memory
from transformer_viz.decoding.run import run
from transformer_viz.decoding.token_batch import TokenBatch, can_pad, moves_behind_padding, n_rows_of
from transformer_viz.decoding.tokenizer import TaskAnswer
from transformer_viz.errors import InputError, OptionError, TransformerVizError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.tap import Tap, TapName, compose
from transformer_viz.terms import Kind, ModelKind
from transformer_viz.trace.recorder import Recorder
from transformer_viz.vocabulary import END

AT_ONCE = 32
"""Texts in a batch. With more, padding wastes time; with fewer, calls of tiny operations do."""
Recorded = Literal["weights", "mask", "probabilities"]


@dataclass(frozen=True)
class Answer:
    """The known answer of a text.

    Attributes:
        text: None = it is not known.
        tokens: its tokens or ids, the end included; None where the model has no tokens for it.
    """

    text: str | None = None
    tokens: Sequence[str | int] | None = None


@dataclass(frozen=True)
class Correctness:
    """An output compared with the known answer.

    Attributes:
        is_exact: it is the answer and has ended; never where the answer is not known.
        n_right: tokens of the answer that were written at their place, the end included.
        n_right_before_wrong: of these, those before the first wrong token.
    """

    is_exact: bool
    n_right: int
    n_right_before_wrong: int


@dataclass(frozen=True)
class Text:
    """A text to run, with its known answer.

    Attributes:
        index: its number among all texts.
        ids: its tokens, framed.
        limit: the most tokens that may be written after them.
        answer: the known one.
        alignment: for each step the place in the source that it must look at, or None; for all steps that may be written.
    """

    index: int
    ids: Sequence[int]
    limit: int
    answer: Answer = Answer()
    alignment: Sequence[int | None] = ()


@dataclass(frozen=True)
class Batch:
    """The outputs and the recorded attention of texts that were run together.

    Attributes:
        texts: in the order of the arrays.
        tokens: their ids, with all that was written.
        written: the ids that each wrote; of an encoder alone those in the places of its mask tokens.
        probabilities: float64, one for each id that was written, of all tokens at temperature 1; empty where not recorded.
        weights: for each recorded kind float32 (text, layer, head, query, key).
        masked: for each recorded kind bool (text or 1, layer, head or 1, query, key), True = masked.
    """

    texts: Sequence[Text]
    tokens: TokenBatch
    written: list[list[int]]
    probabilities: list[np.ndarray]
    weights: dict[Kind, np.ndarray]
    masked: dict[Kind, np.ndarray]

    def is_finite(self, i: int) -> bool:
        """Tells whether all numbers of a text are; those of padding may be none."""
        numbers = [self.probabilities[i], *(self.tokens.crop(weights, kind, i) for kind, weights in self.weights.items())]
        return all(np.isfinite(array.sum()) for array in numbers)


class TooLarge(Exception):
    """Raised when the attention of several texts does not fit into memory at once."""


def run_texts(
    model: LoadedModel,
    texts: Sequence[Text],
    *,
    record: Collection[Recorded] = (),
    kinds: Sequence[Kind] | None = None,
    at_once: int | None = None,
    on_failure: Callable[[Text, TransformerVizError], None] | None = None,
) -> Iterator[Batch]:
    """Runs texts in batches, in the order of their lengths; a batch whose attention does not fit is run in halves.

    Args:
        model: in eval mode.
        texts: their batches depend on lengths, limits and answers alone.
        record: see `Batch`.
        kinds: of attention that are recorded; None = all that the model has.
        at_once: the most texts of a batch; None is `AT_ONCE`.
        on_failure: is called with a text that fails by itself, and the others of its batch are run without it. None = the error
            is raised.

    Raises:
        TransformerVizError: as `decode`.
    """
    waiting = list(batches(model, texts, record=record, kinds=kinds, at_once=at_once))
    while waiting:
        batch = waiting.pop(0)
        try:
            result = run_batch(model, batch, record=record, kinds=kinds)
        except TooLarge:
            half = len(batch) // 2
            waiting[:0] = [batch[:half], batch[half:]]
        except TransformerVizError as error:
            if on_failure is None:
                raise
            if len(batch) == 1:
                on_failure(batch[0], error)
            else:
                waiting[:0] = [[text] for text in batch]
        else:
            yield result


def batches(
    model: LoadedModel,
    texts: Sequence[Text],
    *,
    record: Collection[Recorded] = (),
    kinds: Sequence[Kind] | None = None,
    at_once: int | None = None,
    pad_prompts: bool = True,
) -> Iterator[list[Text]]:
    """Texts of about one length together, as `run_texts` runs them; with `pad_prompts` False prompts of one length alone."""
    reader, most_texts = model.network, AT_ONCE if at_once is None else at_once
    batch: list[Text] = []
    limit = n_steps = 0
    for text in sorted(texts, key=lambda text: len(text.ids)):
        width = len(text.ids)
        limit, n_steps = max(limit, text.limit), max(n_steps, len(text.answer.tokens or "1"))
        has_room = can_pad(reader, width, limit) and (pad_prompts or not moves_behind_padding(reader))
        is_full = len(batch) >= most_texts or not (has_room or not batch or len(batch[0].ids) == width)
        if batch and (is_full or not _fits(model, len(batch) + 1, width, min(n_steps, limit), record, kinds)):
            yield batch
            batch, limit, n_steps = [], text.limit, len(text.answer.tokens or "1")
        batch.append(text)
    if batch:
        yield batch


def _fits(
    model: LoadedModel, n_texts: int, width: int, n_steps: int, record: Collection[Recorded], kinds: Sequence[Kind] | None
) -> bool:
    """Tells whether the recorded attention and logits of a batch fit into memory, at `width` tokens read and `n_steps` written.

    Prompts, and the sources of an encoder alone, have logits at every place.
    """
    sizes, kind = model.network.sizes, model.network.kind
    rows = n_rows_of(kind, width, n_steps)
    cells: dict[Kind, int] = {"encoder": width * width, "decoder": rows * rows, "cross": rows * width}
    recorded = (sizes.kinds if kinds is None else kinds) if "weights" in record else ()
    n_weights = sum(len(sizes.layers[kind]) * sizes.heads[kind] * cells[kind] for kind in recorded)
    n_logits = 0 if kind is ModelKind.ENCODER_DECODER else width * sizes.vocabulary
    return n_texts <= memory.n_at_once(memory.KEPT, n_weights, n_logits)


def run_batch(
    model: LoadedModel,
    texts: Sequence[Text],
    *,
    record: Collection[Recorded] = (),
    kinds: Sequence[Kind] | None = None,
    tap: Tap | None = None,
    cached: bool = True,
    width: int = 0,
) -> Batch:
    """Runs texts together: greedy decoding, or one pass of an encoder alone.

    Args:
        model: in eval mode.
        texts: at least one.
        record: see `Batch`; of attention as `tap` leaves it.
        kinds: of attention that are recorded; None = all that the model has.
        tap: may change attention.
        cached: False where a later token may change an earlier row.
        width: texts are padded to so many tokens, or to the longest.

    Raises:
        TooLarge: several texts have more weights than may be recorded at once.
        TransformerVizError: as `decode`.
    """
    reader, rows = model.network, [text.ids for text in texts]
    width = max(width, *map(len, rows))
    batch, limits = TokenBatch.of(reader, rows, width=width, device=model.device), [text.limit for text in texts]
    names: list[TapName] = [name for name in ("weights", "mask") if name in record]
    recorded = (reader.sizes.kinds if kinds is None else kinds) if names else ()
    recorder = Recorder(names, recorded, reader.sizes.layers, most_rows=n_rows_of(reader.kind, width, max(limits)))
    seen = compose(tap, recorder if names else None)
    probabilities, rows_of_p = [np.empty(0) for _ in texts], list[Tensor]()

    def on_step(step: int, logits: Tensor, chosen: Tensor) -> None:
        if "probabilities" in record and step >= 0:
            rows_of_p.append(logits.double().log_softmax(-1).gather(-1, chosen[:, None])[:, 0].exp())
        if names and step >= 0 and not _fits(model, len(texts), width, step + 1, record, kinds):
            raise TooLarge

    with devices.running(model):
        ran = run(reader, batch, tap=seen, on_step=on_step, max_length=max(limits), limits=limits, cached=cached)
        written = [ran.batch.output(i) for i in range(len(texts))]
        if rows_of_p:
            p = torch.stack(rows_of_p, 1).cpu().numpy()
            probabilities = [row[: len(own)] for row, own in zip(p, written, strict=True)]
        mask_id = model.tokenizer.mask_id
        if not reader.kind.writes and ran.logits is not None and mask_id is not None:
            written = [row[own].tolist() for row, own in zip(ran.logits.argmax(-1), batch.source == mask_id, strict=True)]
        arrays = {kind: recorder.arrays(kind) for kind in recorded}
    weights = {kind: of["weights"].astype(np.float32, copy=False) for kind, of in arrays.items() if "weights" in of}
    masked = {kind: of["mask"] for kind, of in arrays.items() if "mask" in of}
    return Batch(texts, ran.batch, written, probabilities, weights, masked)


def drawn_texts(model: LoadedModel, texts: Sequence[str], first: int = 0) -> Iterator[Text]:
    """Texts that a model's own task drew, which may be longer than what people may type; numbered from `first`.

    Raises:
        OptionError: the model has no task.
    """
    if (task := model.task) is None:
        raise OptionError(f"{model.name} has no task that strings could be drawn from; give texts of your own")
    for index, text in enumerate(texts, first):
        symbols = task.symbols(text)
        answer = task.answer(symbols)
        limit = min(max(task.max_target_length, len(answer or ())) + 1, model.network.sizes.longest_target)
        known = Answer() if answer is None else Answer(task.join(answer), (*answer, END))
        yield Text(index, task.source_vocabulary.encode(task.frame(symbols)), limit, known, task.alignment(symbols, limit))


def answer_of(model: LoadedModel, known: TaskAnswer, target: str | None = None) -> Answer:
    """The right answer of a text: its target, else what the task knows."""
    if target is None:
        return Answer(known.expected, known.expected_tokens)
    try:
        return Answer(target, [*model.tokenizer.encode_target(target), model.network.end_ids[0]])
    except InputError:
        return Answer(target)


def compare_with_answer(model: LoadedModel, answer: Answer, ids: Sequence[int]) -> Correctness:
    """Tells whether the written `ids` are the answer, and how much of them."""
    true = list(answer.tokens or ())
    written = model.tokenizer.target_labels(ids) if true and isinstance(true[0], str) else list(ids)
    is_right = [a == b for a, b in zip(written, true, strict=False)]
    has_ended = bool(ids) and ids[-1] in model.network.end_ids
    is_answer = written == true if true else answer.text is not None and answer.text == model.tokenizer.text(ids)
    n_right_first = next((step for step, right in enumerate(is_right) if not right), len(is_right))
    return Correctness(has_ended and is_answer, sum(is_right), n_right_first)
