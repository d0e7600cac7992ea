"""The files of all blocks made into one survey: every mean, interval, histogram and list is computed here, once.

A column is one statistic of all texts in the order of their lines, so that a survey is the same to the last bit whichever
workers computed its blocks. Columns are read one at a time: memory grows with the texts, not with the statistics.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.head_names import ROLES
from transformer_viz.attribution.result.verdict import merge_verdicts
from transformer_viz.surveys.blocks import BlockResult, bleu_metric, read_arrays, read_description, read_verdicts
from transformer_viz.surveys.result import (
    CUT,
    MOST_COMPARED,
    SHARES,
    STATISTICS,
    Confidence,
    CorrectAtLength,
    Failed,
    HeadStatistic,
    HeadTexts,
    Survey,
    SurveyedKind,
    SurveyedModel,
    SurveyedOutputs,
    SurveyedTexts,
    TextValue,
    WorstOutput,
    role_share,
)
from transformer_viz.terms import KINDS, Kind
from transformer_viz.text_display import shorten
from transformer_viz.version import __version__

MOST_FAILED = 20
Paths = Sequence[str | PathLike[str]]


def merge(
    texts: Sequence[str],
    blocks: Paths,
    verdicts: Paths,
    *,
    model: SurveyedModel,
    kinds: Mapping[Kind, SurveyedKind],
    source: str,
    digest: str,
    options: Mapping[str, Any],
) -> Survey:
    """One survey of all blocks.

    Args:
        texts: all lines, from line 1 on.
        blocks: files of `BlockResult`, in the order of the lines.
        verdicts: files of `VerdictResults`, in the order of the lines.
        model: whose.
        kinds: its layers and heads.
        source: the name of the texts, for people.
        digest: of all lines.
        options: what decided the numbers: `k` texts are kept of each head, chosen `by` a statistic; `seed` is that of the
            intervals of verdicts.

    Raises:
        SurveyError: a file that is damaged.
    """
    texts, results = [shorten(text, CUT) for text in texts], [read_description(path) for path in blocks]
    faults = [fault for result in results for fault in result.faults]
    read = np.array([place for place, fault in enumerate(faults) if fault is None], np.int64)
    failed = [(place, fault) for place, fault in enumerate(faults) if fault is not None]
    k = int(options["k"])
    # Texts are chosen by the first of these that a head has in some text.
    preferred = [name for name in dict.fromkeys((options.get("by"), "mass", "entropy_share")) if name is not None]

    heads, examples, agreement = list[HeadStatistic](), list[HeadTexts](), {}
    for kind in (kind for kind in KINDS if kind in kinds):
        places = [HeadAddress(kind, layer, head) for layer in kinds[kind].layers for head in range(kinds[kind].n_heads)]
        rows, chosen = [list[HeadStatistic]() for _ in places], dict[str, np.ndarray]()
        for number, statistic in enumerate(STATISTICS):
            column = _column(blocks, f"{kind}.values", number)[read].reshape(len(read), 2, len(places))
            own, uniform = column.swapaxes(0, 1)
            if statistic.name in preferred:
                chosen[statistic.name] = own
            for head, place in enumerate(places):
                is_number = ~np.isnan(own[:, head])
                values = own[is_number, head]
                if n := len(values):
                    clipped = np.clip(values, statistic.edges[0], statistic.edges[-1])
                    row = HeadStatistic(
                        **vars(place),
                        statistic=statistic.name,
                        n=n,
                        mean=float(values.mean()),
                        sd=float(values.std(ddof=1)) if n > 1 else 0.0,
                        min=float(values.min()),
                        max=float(values.max()),
                        uniform=float(uniform[is_number, head].mean()),
                        counts=tuple(np.histogram(clipped, statistic.edges)[0].tolist()),
                    )
                    rows[head].append(row)
        roles = _column(blocks, f"{kind}.roles")[read].reshape(len(read), len(places))
        for head, place in enumerate(places):
            n_of_role = np.bincount(roles[:, head], minlength=len(ROLES)).tolist()
            heads += rows[head]
            heads += [role_share(place, role, n, len(read)) for role, n in zip(ROLES, n_of_role, strict=True) if n]
            means = {row.statistic: row.mean for row in rows[head]}
            by = next((name for name in preferred if name in means), None)
            if by is not None:
                values = chosen[by][:, head]
                distances, lists = np.abs(values - means[by]), dict[str, Any]()
                for name, keys in (("highest", -values), ("typical", distances), ("unusual", -distances)):
                    # Stable, so that of equal ones the first lines are kept; NaN comes last.
                    order = [i for i in keys.argsort(kind="stable")[:k].tolist() if not np.isnan(keys[i])]
                    lines = zip(order, read[order].tolist(), strict=True)
                    lists[name] = tuple([TextValue(line=n + 1, text=texts[n], value=float(values[i])) for i, n in lines])
                examples.append(HeadTexts(**vars(place), by=by, **lists))
        if len(places) <= MOST_COMPARED:
            # For each pair of heads the mean share of rows with the same largest key; None where no text has such rows.
            n_texts: Any = sum(read_arrays(blocks, f"{kind}.compared"))
            shares = (sum(read_arrays(blocks, f"{kind}.agreed")) / np.maximum(n_texts, 1)).astype(object)
            shares[n_texts == 0] = None
            agreement[kind] = tuple(map(tuple, shares.tolist()))
    judged = [read_verdicts(path) for path in verdicts]
    judgements = [verdict for result in judged for verdict in result.verdicts]
    missing = {name: why for result in judged for name, why in result.missing.items()}
    return Survey(
        model=model,
        texts=SurveyedTexts(
            source=source,
            n=len(faults),
            n_read=len(read),
            n_failed=len(failed),
            failed=tuple(Failed(line=place + 1, text=texts[place], why=fault) for place, fault in failed[:MOST_FAILED]),
            digest=digest,
        ),
        options=dict(options),
        statistics=STATISTICS,
        kinds=dict(kinds),
        heads=tuple(heads),
        examples=tuple(examples),
        agreement=agreement,
        outputs=_outputs(texts, results, blocks, read, k) if any(result.outputs for result in results) else None,
        verdict=merge_verdicts(judgements, missing, seed=int(options.get("seed", 0))) if judgements else None,
        version=__version__,
    )


def _column(blocks: Paths, name: str, statistic: int | None = None) -> np.ndarray:
    """One array of all blocks, joined along its texts."""
    return np.concatenate([*read_arrays(blocks, name, statistic)])


def _outputs(texts: Sequence[str], results: Sequence[BlockResult], blocks: Paths, read: np.ndarray, k: int) -> SurveyedOutputs:
    """Merges the outputs: how right it is, by length, how sure, and the worst."""
    written, expected = ([text for result in results for text in getattr(result, name)] for name in ("outputs", "expected"))
    has_bleu = all(result.has_bleu for result in results)
    names = ("length", "is_known", "is_exact", "n_tokens", "n_right", "confidence", "bleu", "n_written", "n_judged")
    of = {name: _column(blocks, f"outputs.{name}")[read] for name in (*names, "n_judged_right")}
    p = _column(blocks, "outputs.p")
    # The place of each token in its text tells which are judged.
    place = np.arange(len(p)) - np.repeat(np.cumsum(of["n_written"]) - of["n_written"], of["n_written"])
    is_judged, is_right = (place < np.repeat(of[name], of["n_written"]) for name in ("n_judged", "n_judged_right"))
    bins = np.clip(np.searchsorted(SHARES, p, "right") - 1, 0, len(SHARES) - 2)

    def histogram(some: np.ndarray, weights: np.ndarray | None = None) -> tuple[Any, ...]:
        own = None if weights is None else weights[some]
        return tuple(np.bincount(bins[some], own, minlength=len(SHARES) - 1).tolist())

    def correct(some: np.ndarray) -> dict[str, Any]:
        counts = {"n": int(some.sum()), "n_known": int(of["is_known"][some].sum()), "n_exact": int(of["is_exact"][some].sum())}
        counts |= {name: int(of[name][some].sum()) for name in ("n_tokens", "n_right")}
        bleu, sums = bleu_metric(), of["bleu"][some].sum(0).tolist()
        if bleu is None or not has_bleu or not counts["n_known"]:
            return {**counts, "bleu": None}
        score = bleu.compute_bleu(sums[:4], sums[4:8], sums[8], sums[9], smooth_method="exp").score
        return {**counts, "bleu": score}

    def badness(i: int) -> tuple[bool, float]:
        """The worst outputs: wrong ones, the surest first, then those without a known answer, the least probable first."""
        is_known, confidence = bool(of["is_known"][i]), float(of["confidence"][i])
        return (False, -confidence) if is_known else (True, confidence)

    worst = sorted(np.flatnonzero(~of["is_exact"]).tolist(), key=badness)[:k]
    every = np.ones(len(p), bool)
    return SurveyedOutputs(
        **correct(np.ones(len(read), bool)),
        by_length=tuple(
            CorrectAtLength(length=length, **correct(of["length"] == length)) for length in np.unique(of["length"]).tolist()
        ),
        confidence=Confidence(
            edges=SHARES,
            counts=histogram(every),
            n_judged=histogram(is_judged),
            sum_p=tuple(map(float, histogram(is_judged, p))),
            n_right=histogram(is_right),
        ),
        worst=tuple(
            WorstOutput(
                line=line + 1,
                text=texts[line],
                output=written[line],
                expected=expected[line],
                confidence=float(of["confidence"][i]),
            )
            for i, line in zip(worst, read[worst].tolist(), strict=True)
        ),
    )
