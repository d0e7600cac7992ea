"""Texts of a block as batches: written greedily or read, with the attention of all of them at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from transformer_viz.decoding.greedy import greedy
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.surveying.block import Line
from transformer_viz.terms import Kind
from transformer_viz.trace.recorder import Recorder
from transformer_viz.tracing.framing import padded_batch

AT_ONCE = 32
"""Texts of a batch of several lengths. More waste time on padding, fewer on the calls of tiny operations."""
MOST_WEIGHTS = 2**26
"""Recorded at once: 256 MiB in float32. One text alone may have more."""
_MOST_LOGITS = 2**22


@dataclass(frozen=True)
class Text:
    """A line that can be read: its ids, and the most tokens that may be written after them."""

    place: int
    line: Line
    ids: Sequence[int]
    limit: int


@dataclass(frozen=True)
class Batch:
    """What became of texts that were run together.

    Attributes:
        texts: in the order of the arrays.
        written: the ids that each wrote, none of an encoder alone.
        probabilities: float64, one for each of them; that of all tokens at temperature 1.
        weights: for each kind float32 (text, layer, head, query, key).
        masked: likewise bool (text or 1, layer, head or 1, query, key); None where nothing is but what was not written yet.
        is_growing: whether the keys of a decoder's row ended at its own position.
        is_prompted: whether texts are read by the decoder, shorter ones behind padding.
    """

    texts: Sequence[Text]
    written: list[list[int]]
    probabilities: list[np.ndarray]
    weights: dict[Kind, np.ndarray]
    masked: dict[Kind, np.ndarray | None]
    is_growing: bool
    is_prompted: bool

    @property
    def width(self) -> int:
        """Of what was read before anything was written."""
        return max(len(text.ids) for text in self.texts)

    def n_rows(self, i: int) -> int:
        """How many rows the decoder has of a text."""
        before = len(self.texts[i].ids) - 1 if self.is_prompted else 0
        return before + len(self.written[i])

    def n_before(self, kind: Kind, i: int) -> int:
        """How many rows of padding stand before a text's own."""
        return self.width - len(self.texts[i].ids) if self.is_prompted and kind == "decoder" else 0

    @cached_property
    def _are_finite(self) -> bool:
        """Whether all numbers are, padding included."""
        return all(np.isfinite(each).all() for each in self.probabilities) and all(
            np.isfinite(weights.sum()) for weights in self.weights.values()
        )

    def is_finite(self, i: int) -> bool:
        """Whether all numbers of a text are; those of padding may be none."""
        own = [self.probabilities[i], *(self._own(kind, i) for kind in self.weights)]
        return self._are_finite or all(np.isfinite(each.sum()) for each in own)

    def _own(self, kind: Kind, i: int) -> np.ndarray:
        first, n_source, n_rows = self.n_before(kind, i), len(self.texts[i].ids), self.n_rows(i)
        n_queries, n_keys = n_source if kind == "encoder" else n_rows, n_rows if kind == "decoder" else n_source
        return self.weights[kind][i, ..., first : first + n_queries, first : first + n_keys]


class TooLarge(Exception):
    """The attention of these texts does not fit at once."""


def batches(model: LoadedModel, texts: Sequence[Text]) -> Iterator[list[Text]]:
    """Texts of about one length together; which, depends on their lengths alone."""
    most = min(model.model.sizes.longest_target, model.model.sizes.longest_source)
    is_prompted, has_rules = _is_prompted(model), model.model.rules is not None
    batch: list[Text] = []
    limit = 0
    for text in sorted(texts, key=lambda text: len(text.ids)):
        limit = max(limit, text.limit)
        # Rules may count from the end, and padded prompts need places too.
        fits = not is_prompted or (len(text.ids) + limit <= most and not has_rules)
        is_even = not batch or len(batch[0].ids) == len(text.ids)
        is_full = not is_even and (len(batch) >= AT_ONCE or not fits)
        if batch and (is_full or _n_weights(model, len(batch) + 1, len(text.ids), 1) > MOST_WEIGHTS):
            yield batch
            batch, limit = [], text.limit
        batch.append(text)
    if batch:
        yield batch


def run(model: LoadedModel, texts: Sequence[Text]) -> Batch:
    """Runs texts together.

    Raises:
        TooLarge: several texts have more weights than may be held at once.
        TransformerVizError: as `decode`.
    """
    device, reader, is_prompted = model.device, model.model, _is_prompted(model)
    rows = [text.ids for text in texts]
    width = max(map(len, rows))
    ids, padding = padded_batch(rows, reader.pad_id, width, on_left=is_prompted, device=device)
    recorder = Recorder(("weights", "mask"))
    given = ids, (padding if any(len(row) < width for row in rows) else None)
    with torch.inference_mode(), devices.memory_errors(device):
        if reader.sizes.writes:
            written, probabilities = _written(model, texts, given, recorder)
        else:
            reader.encode(*given, tap=recorder)
            written, probabilities = [[] for _ in texts], [np.empty(0) for _ in texts]
        kinds = reader.sizes.kinds
        weights = {kind: _numpy(recorder.gathered(kind, "weights")).astype(np.float32, copy=False) for kind in kinds}
        masked = {
            kind: None if recorder.is_open(kind) else _numpy(recorder.gathered(kind, "mask", fill=True)) for kind in kinds
        }
        return Batch(texts, written, probabilities, weights, masked, recorder.is_growing("decoder"), is_prompted)


def _written(
    model: LoadedModel, texts: Sequence[Text], given: tuple[Tensor, Tensor | None], recorder: Recorder
) -> tuple[list[list[int]], list[np.ndarray]]:
    """What each text wrote, within its limit, and how probable each token was."""
    width = given[0].shape[1]
    chances, n_steps, is_stopped = _Chances(len(texts), model.model.sizes.vocabulary), 0, False

    def after_step(_: Tensor) -> bool:
        nonlocal n_steps, is_stopped
        n_steps += 1
        is_stopped = len(texts) > 1 and _n_weights(model, len(texts), width, n_steps) > MOST_WEIGHTS
        return not is_stopped

    limit = max(text.limit for text in texts)
    found = greedy(model.model, *given, max_length=limit, tap=recorder, log=chances.add, after_step=after_step, drop_ended=True)
    if is_stopped:
        raise TooLarge
    p = chances.found()[:, -found.ids.shape[1] :]
    lengths = [min(length, text.limit) for length, text in zip(found.lengths.tolist(), texts, strict=True)]
    each = list(zip(found.ids.tolist(), p, lengths, strict=True))
    return [ids[:length] for ids, _, length in each], [one[:length] for _, one, length in each]


class _Chances:
    """The probability of each token that was written, from logits that come row by row and are not all kept."""

    def __init__(self, n: int, vocabulary: int) -> None:
        self._most = max(1, _MOST_LOGITS // (n * vocabulary))
        self._logits: list[Tensor] = []
        self._ids: list[Tensor] = []
        self._found: list[np.ndarray] = []

    def add(self, logits: Tensor, ids: Tensor) -> None:
        """One row more of every sentence: logits (batch, vocabulary), and the ids (batch,) that followed."""
        self._logits.append(logits)
        self._ids.append(ids)
        if len(self._logits) >= self._most:
            self._look()

    def found(self) -> np.ndarray:
        """float64 (batch, row)."""
        self._look()
        return np.concatenate(self._found, 1)

    def _look(self) -> None:
        if self._logits:
            exact = torch.stack(self._logits, 1).double().log_softmax(-1)
            own = exact.gather(-1, torch.stack(self._ids, 1)[..., None])[..., 0]
            self._found.append(own.exp().cpu().numpy())
            self._logits.clear()
            self._ids.clear()


def _is_prompted(model: LoadedModel) -> bool:
    return model.model.start_id is None and model.model.sizes.writes


def _n_weights(model: LoadedModel, n_texts: int, width: int, n_steps: int) -> int:
    """Of all kinds, of texts of this many tokens, once so many tokens are written."""
    sizes = model.model.sizes
    rows = n_steps + (width - 1 if _is_prompted(model) else 0)
    cells: dict[Kind, int] = {"encoder": width * width, "decoder": rows * rows, "cross": rows * width}
    return n_texts * sum(len(sizes.layers[kind]) * sizes.heads[kind] * cells[kind] for kind in sizes.kinds)


def _numpy(found: Tensor | None) -> np.ndarray:
    assert found is not None
    return found.cpu().numpy()
