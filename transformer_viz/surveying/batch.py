"""Texts of a block that are run together: how many fit, and what became of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from torch import Tensor

from transformer_viz.loaded_model import Known, LoadedModel
from transformer_viz.surveying.block import Line
from transformer_viz.terms import Kind
from transformer_viz.trace.recorder import Recorder

AT_ONCE = 32
"""Texts of a batch of several lengths. More waste time on padding, fewer on the calls of tiny operations."""
MOST_WEIGHTS = 2**26
"""Recorded at once: 256 MiB in float32. One text alone may have more."""


@dataclass(frozen=True)
class Text:
    """A line that can be read.

    Attributes:
        place: in the block.
        line: itself.
        ids: its tokens, framed.
        limit: the most tokens that may be written after them.
        known: what a task knows of it, of as many steps as there can be.
        draft: the ids that the model will write if it is right; None = nobody knows any.
    """

    place: int
    line: Line
    ids: Sequence[int]
    limit: int
    known: Known
    draft: Sequence[int] | None = None


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
        has_prompts: whether texts are read by the decoder, shorter ones behind padding.
    """

    texts: Sequence[Text]
    written: list[list[int]]
    probabilities: list[np.ndarray]
    weights: dict[Kind, np.ndarray]
    masked: dict[Kind, np.ndarray | None]
    is_growing: bool
    has_prompts: bool

    @classmethod
    def of(
        cls,
        texts: Sequence[Text],
        written: list[list[int]],
        probabilities: list[np.ndarray],
        recorder: Recorder,
        model: LoadedModel,
    ) -> "Batch":
        """What a recorder saw of all of them."""
        kinds = model.model.sizes.kinds
        return cls(
            texts=texts,
            written=written,
            probabilities=probabilities,
            weights={kind: _numpy(recorder.gathered(kind, "weights")).astype(np.float32, copy=False) for kind in kinds},
            masked={
                kind: None if recorder.is_open(kind) else _numpy(recorder.gathered(kind, "mask", fill=True)) for kind in kinds
            },
            is_growing=recorder.is_growing("decoder"),
            has_prompts=model.model.kind.has_prompt,
        )

    def put(self, places: np.ndarray, others: "Batch") -> None:
        """Other outputs of some of its texts, and what was seen of them: as many tokens wide, behind the same masks."""
        for row, i in enumerate(places):
            self.written[i], self.probabilities[i] = others.written[row], others.probabilities[row]
        for kind, weights in others.weights.items():
            self.weights[kind][places] = weights

    def only(self, places: np.ndarray) -> "Batch":
        """Some of its texts."""
        if len(places) == len(self.texts):
            return self
        masked = {kind: each if each is None or len(each) == 1 else each[places] for kind, each in self.masked.items()}
        return replace(
            self,
            texts=[self.texts[i] for i in places],
            written=[self.written[i] for i in places],
            probabilities=[self.probabilities[i] for i in places],
            weights={kind: each[places] for kind, each in self.weights.items()},
            masked=masked,
        )

    @property
    def width(self) -> int:
        """Of what was read before anything was written."""
        return max(len(text.ids) for text in self.texts)

    def n_rows(self, i: int) -> int:
        """How many rows the decoder has of a text."""
        before = len(self.texts[i].ids) - 1 if self.has_prompts else 0
        return before + len(self.written[i])

    def n_before(self, kind: Kind, i: int) -> int:
        """How many rows of padding stand before a text's own."""
        return self.width - len(self.texts[i].ids) if self.has_prompts and kind == "decoder" else 0

    @cached_property
    def _are_finite(self) -> bool:
        """Whether all numbers are, padding included."""
        return all(np.isfinite(each).all() for each in self.probabilities) and all(
            np.isfinite(weights.sum()) for weights in self.weights.values()
        )

    def is_finite(self, i: int) -> bool:
        """Whether all numbers of a text are; those of padding may be none."""
        if self._are_finite:
            return True
        own = [self.probabilities[i], *(self._own(kind, i) for kind in self.weights)]
        return all(np.isfinite(each.sum()) for each in own)

    def _own(self, kind: Kind, i: int) -> np.ndarray:
        first, n_source, n_rows = self.n_before(kind, i), len(self.texts[i].ids), self.n_rows(i)
        n_queries, n_keys = n_source if kind == "encoder" else n_rows, n_rows if kind == "decoder" else n_source
        return self.weights[kind][i, ..., first : first + n_queries, first : first + n_keys]


class TooLarge(Exception):
    """The attention of these texts does not fit at once."""


def batches(model: LoadedModel, texts: Sequence[Text]) -> Iterator[list[Text]]:
    """Texts of about one length together; which, depends on their lengths alone."""
    most = min(model.model.sizes.longest_target, model.model.sizes.longest_source)
    with_prompts, has_rules = model.model.kind.has_prompt, model.model.rules is not None
    batch: list[Text] = []
    limit = 0
    for text in sorted(texts, key=lambda text: len(text.ids)):
        limit = max(limit, text.limit)
        # Rules may count from the end, and padded prompts need places too.
        fits = not with_prompts or (len(text.ids) + limit <= most and not has_rules)
        is_even = not batch or len(batch[0].ids) == len(text.ids)
        is_full = not is_even and (len(batch) >= AT_ONCE or not fits)
        if batch and (is_full or not fit(model, len(batch) + 1, len(text.ids), 1)):
            yield batch
            batch, limit = [], text.limit
        batch.append(text)
    if batch:
        yield batch


def fit(model: LoadedModel, n_texts: int, width: int, n_steps: int) -> bool:
    """Whether the attention of texts of this many tokens is held at once when so many tokens are written; of one text it is."""
    sizes = model.model.sizes
    rows = n_steps + (width - 1 if model.model.kind.has_prompt else 0)
    cells: dict[Kind, int] = {"encoder": width * width, "decoder": rows * rows, "cross": rows * width}
    each = sum(len(sizes.layers[kind]) * sizes.heads[kind] * cells[kind] for kind in sizes.kinds)
    return n_texts == 1 or n_texts * each <= MOST_WEIGHTS


def _numpy(found: Tensor | None) -> np.ndarray:
    assert found is not None
    return found.cpu().numpy()
