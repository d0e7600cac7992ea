"""What was written, added up over blocks: how right it is, by length, how sure, and the worst."""

from collections.abc import Sequence

import numpy as np

from transformer_viz.analysis.survey.partial import N_BLEU, OutputsPartial
from transformer_viz.analysis.survey.result import Confidence, CorrectAtLength, SurveyedOutputs, WorstOutput
from transformer_viz.analysis.survey.statistic import SHARES

_N_COUNTS = 5


class Outputs:
    """The sums so far; `k` of the worst are kept."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._has_bleu = True
        self._at: dict[int, np.ndarray] = {}
        n_bins = len(SHARES) - 1
        self._counts = np.zeros((3, n_bins), np.int64)
        self._sum_p = np.zeros(n_bins)
        self._worst: list[tuple[tuple[int, float, int], WorstOutput]] = []

    def add(self, lines: Sequence[int], texts: Sequence[str], of: OutputsPartial) -> None:
        """Those of one block."""
        self._has_bleu &= of.has_bleu
        counts = (np.ones_like(of.length), of.is_known, of.is_exact, of.n_tokens, of.n_right)
        for length, row in zip(of.length.tolist(), np.stack([*counts, *of.bleu.T], 1), strict=True):
            self._at[length] = self._at.get(length, 0) + row
        self._counts += np.stack([of.counts, of.n_judged, of.right])
        self._sum_p += of.sum_p
        each = zip(lines, texts, of.texts, of.expected, of.is_known, of.confidence.tolist(), of.is_exact, strict=True)
        for line, text, output, expected, is_known, confidence, is_exact in each:
            if not is_exact:
                # Wrong ones first, the surest before all; then those of which nobody knows, the least probable before all.
                key = (0, -confidence, line) if is_known else (1, confidence, line)
                one = WorstOutput(line=line, text=text, output=output, expected=expected, confidence=confidence)
                self._worst.append((key, one))
        self._worst = sorted(self._worst, key=lambda one: one[0])[: self._k]

    def made(self) -> SurveyedOutputs:
        """Of all that was added."""
        whole = np.sum(list(self._at.values()), 0) if self._at else np.zeros(_N_COUNTS + N_BLEU, np.int64)
        return SurveyedOutputs(
            **self._correct(whole),
            by_length=tuple(CorrectAtLength(length=length, **self._correct(self._at[length])) for length in sorted(self._at)),
            confidence=Confidence(
                edges=SHARES,
                counts=tuple(self._counts[0].tolist()),
                n_judged=tuple(self._counts[1].tolist()),
                sum_p=tuple(self._sum_p.tolist()),
                n_right=tuple(self._counts[2].tolist()),
            ),
            worst=tuple(one for _, one in self._worst),
        )

    def _correct(self, row: np.ndarray) -> dict:
        names = ("n", "n_known", "n_exact", "n_tokens", "n_right")
        found = dict(zip(names, row[:_N_COUNTS].tolist(), strict=True))
        return {**found, "bleu": _bleu(row[_N_COUNTS:].tolist()) if self._has_bleu and found["n_known"] else None}


def _bleu(sums: list[int]) -> float | None:
    """Corpus BLEU of sacrebleu (Post 2018) from the sums of its sentences; None where it is not installed."""
    try:
        from sacrebleu.metrics import BLEU
    except ModuleNotFoundError:
        return None
    return BLEU.compute_bleu(sums[:4], sums[4:8], sums[8], sums[9], smooth_method="exp").score
