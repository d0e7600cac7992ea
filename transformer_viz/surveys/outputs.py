"""The outputs of a block's texts, compared with the known answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz.batches import Text, compare_with_answer
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveys.block_results import CUT, N_BLEU
from transformer_viz.text_display import shorten


class Outputs:
    """What the texts of one block wrote, the known answers, and `arrays` as in `BlockResult`."""

    def __init__(self, model: LoadedModel, n_texts: int) -> None:
        self._model = model
        self._bleu = _bleu() if model.task is None else None
        self.has_bleu = self._bleu is not None
        self.texts, self.expected = [""] * n_texts, list[str | None]([None] * n_texts)
        numbers = ("length", "n_tokens", "n_right", "n_written", "n_judged", "n_judged_right")
        self._of: dict[str, np.ndarray] = {name: np.zeros(n_texts, np.int64) for name in numbers}
        self._of |= {"is_known": np.zeros(n_texts, bool), "is_exact": np.zeros(n_texts, bool)}
        self._of |= {"confidence": np.zeros(n_texts), "bleu": np.zeros((n_texts, N_BLEU), np.int64)}
        self._p = [np.empty(0)] * n_texts

    def add(self, text: Text, length: int, ids: Sequence[int], p: np.ndarray) -> None:
        """One text: the length of its source, what was written and how probable each token was."""
        model, i, answer, n_tokens = self._model, text.index, text.answer.text, len(text.answer.tokens or ())
        output, correct = model.tokenizer.text(ids), compare_with_answer(model, text.answer, ids)
        # The token after a right prefix is judged too; where only the prefix was written, nothing is wrong but what is missing.
        n_judged = min(correct.n_right_before_wrong + 1, len(ids)) if n_tokens else 0
        confidence = 0.0
        if not correct.is_exact and n_tokens:
            confidence = float(p[n_judged - 1])
        elif not correct.is_exact and len(p):
            with np.errstate(divide="ignore"):
                confidence = float(np.exp(np.log(p).mean()))
        self.texts[i], self.expected[i] = shorten(output, CUT), None if answer is None else shorten(answer, CUT)
        values = {"length": length, "n_tokens": n_tokens, "n_right": correct.n_right, "n_written": len(p)}
        values |= {"n_judged": n_judged, "n_judged_right": min(correct.n_right_before_wrong, n_judged)}
        values |= {"is_known": answer is not None, "is_exact": correct.is_exact}
        for name, value in {**values, "confidence": confidence}.items():
            self._of[name][i] = value
        self._p[i] = p
        if self._bleu is not None and answer is not None:
            self._of["bleu"][i] = self._bleu(output, answer)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of `BlockResult`."""
        return {f"outputs.{name}": array for name, array in self._of.items()} | {"outputs.p": np.concatenate(self._p)}


def _bleu() -> Any:
    """A function from an output and its reference to the numbers that sacrebleu (Post 2018) makes BLEU of; None without it."""
    try:
        from sacrebleu.metrics import BLEU
    except ModuleNotFoundError:
        return None
    # Only its counts are taken; with effective order it does not warn of a sentence's score.
    metric = BLEU(effective_order=True)

    def sums(output: str, reference: str) -> list[int]:
        score = metric.sentence_score(output, [reference])
        return [*score.counts, *score.totals, score.sys_len, score.ref_len]

    return sums
