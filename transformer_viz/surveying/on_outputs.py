"""What the texts of a block wrote, beside the known answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.analysis.survey.partial import CUT, N_BLEU, OutputsPartial
from transformer_viz.analysis.survey.statistic import SHARES
from transformer_viz.batches import Text, compare_with_answer
from transformer_viz.errors import shortened
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveying.block import Line


class Outputs:
    """Of one block."""

    def __init__(self, model: LoadedModel, n_texts: int) -> None:
        self._model = model
        self._bleu = _bleu() if model.task is None or model.task.metric == "bleu" else None
        self._texts, self._expected = [""] * n_texts, list[str | None]([None] * n_texts)
        self._numbers = np.zeros((3, n_texts), np.int64)
        self._is_known, self._is_exact = np.zeros((2, n_texts), bool)
        self._confidence = np.zeros(n_texts)
        self._sums = np.zeros((n_texts, N_BLEU), np.int64)
        self._p: list[tuple[int, np.ndarray, int, bool]] = []

    def add(self, text: Text, line: Line, length: int, ids: Sequence[int], p: np.ndarray) -> None:
        """One text: the length of its source, what was written and how probable each token was."""
        model, place, answer = self._model, text.index, text.answer
        output, correctness = model.tokenizer.text(ids), compare_with_answer(model, answer, ids)
        n_true, n_before = len(answer.tokens or ()), correctness.n_right_before_wrong
        self._texts[place] = shortened(output, CUT)
        self._expected[place] = None if answer.text is None else shortened(answer.text, CUT)
        self._numbers[:, place] = length, n_true, correctness.n_right
        self._is_known[place], self._is_exact[place] = answer.text is not None, correctness.is_exact
        # The token after a right prefix is judged too; where only the prefix was written, nothing is wrong but what is missing.
        n_judged = min(n_before + 1, len(ids)) if n_true else 0
        if not correctness.is_exact:
            self._confidence[place] = p[n_judged - 1] if n_true else _mean(p)
        self._p.append((place, p, n_judged, n_before < len(ids)))
        if self._bleu is not None and answer.text is not None:
            # The answer with what the vocabulary does not have.
            is_given = line.target is not None or model.task is None
            self._sums[place] = self._bleu(output, answer.text if is_given else model.task.reference(line.text))

    def partial(self, read: Sequence[int]) -> OutputsPartial:
        """Of the texts that were read, in the order of their lines."""
        chances = [one for one in sorted(self._p, key=lambda one: one[0]) if one[0] in set(read)]
        p = [each[:n] for _, each, n, _ in chances]
        right = [each[: n - is_wrong] for _, each, n, is_wrong in chances if n]
        judged = _joined(p)
        return OutputsPartial(
            texts=tuple(self._texts[i] for i in read),
            expected=tuple(self._expected[i] for i in read),
            has_bleu=self._bleu is not None,
            length=self._numbers[0, read],
            n_tokens=self._numbers[1, read],
            n_right=self._numbers[2, read],
            is_known=self._is_known[read],
            is_exact=self._is_exact[read],
            confidence=self._confidence[read],
            bleu=self._sums[read],
            counts=_histogram(_joined([each for _, each, _, _ in chances])),
            n_judged=_histogram(judged),
            right=_histogram(_joined(right)),
            # Of nothing it counts in whole numbers.
            sum_p=np.bincount(_bins(judged), judged, len(SHARES) - 1).astype(np.float64),
        )


def _mean(p: np.ndarray) -> float:
    """Geometric; of nothing 0."""
    with np.errstate(divide="ignore"):
        return float(np.exp(np.log(p).mean())) if len(p) else 0.0


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0), *parts])


def _bins(p: np.ndarray) -> np.ndarray:
    return np.clip(np.searchsorted(SHARES, p, "right") - 1, 0, len(SHARES) - 2)


def _histogram(p: np.ndarray) -> np.ndarray:
    return np.bincount(_bins(p), minlength=len(SHARES) - 1).astype(np.int64)


def _bleu() -> Any:
    """A function from an output and its reference to the numbers that sacrebleu (Post 2018) makes BLEU of; None without it."""
    try:
        from sacrebleu.metrics import BLEU
    except ModuleNotFoundError:
        return None
    # Only its counts are taken; with effective order it does not warn of a sentence's score.
    metric = BLEU(effective_order=True)

    def sums(output: str, reference: str) -> list[int]:
        found = metric.sentence_score(output, [reference])
        return [*found.counts, *found.totals, found.sys_len, found.ref_len]

    return sums
