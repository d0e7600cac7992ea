"""Blocks made into one survey: planted numbers beside numpy's own functions, and the same bits whatever computed the blocks."""

import random
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from tests.fuzz.mutations import bits, cut, doubled
from tests.surveys.runs import merged
from transformer_viz.analysis.head_names import ROLES
from transformer_viz.attribution.result import verdict as judging
from transformer_viz.attribution.result.verdict import Agreement, Verdict
from transformer_viz.errors import OptionError, SurveyError
from transformer_viz.schema import to_plain
from transformer_viz.surveys.blocks import (
    BlockResult,
    VerdictResults,
    read_arrays,
    read_description,
    read_verdicts,
)
from transformer_viz.surveys.result import NAMES, STATISTICS, SurveyedKind, SurveyOptions

KINDS: Any = {"cross": SurveyedKind(layers=(0, 2), n_heads=3)}
SIZES = (2, 3)
FAULTS = [None, None, "y", None, None, None, None, "y", None, None, None, None, None, None, None]
TEXTS = [f"text {line}" for line in range(1, len(FAULTS) + 1)]


@pytest.fixture
def planted() -> tuple[list[BlockResult], np.ndarray, np.ndarray]:
    """Blocks of 5, 1, 2 and 7 lines, two of which were not read, and all values and roles at once: values between 0 and 1, a
    tenth is missing, and `mass` everywhere in the last head."""
    rng, n = np.random.default_rng(0), len(FAULTS)
    values = rng.random((len(NAMES), 2, n, *SIZES))
    values[rng.random(values.shape) < 0.1] = np.nan
    values[:, 1] = 0.25
    values[NAMES.index("mass"), 0, :, :, -1] = np.nan
    roles = rng.integers(0, len(ROLES), (n, *SIZES)).astype(np.int8)
    is_missing = np.array([fault is not None for fault in FAULTS])
    values[:, :, is_missing], roles[is_missing] = np.nan, -1
    return [part(values, roles, slice(*ends)) for ends in ((0, 5), (5, 6), (6, 8), (8, n))], values, roles


def part(values: np.ndarray, roles: np.ndarray, some: slice) -> BlockResult:
    n_read = FAULTS[some].count(None)
    pairs = {"cross.agreed": np.full((6, 6), 0.5 * n_read), "cross.compared": np.full((6, 6), n_read)}
    arrays = {"cross.values": values[:, :, some], "cross.roles": roles[some], **pairs}
    return BlockResult(digest="d", faults=tuple(FAULTS[some]), outputs=(), expected=(), has_bleu=False, arrays=arrays)


def test_planted_blocks_are_all_texts_at_once(planted, tmp_path):
    parts, values, roles = planted
    found = merged(tmp_path, parts, TEXTS, KINDS, options={"k": 4})
    assert (found.texts.n, found.texts.n_read, found.texts.n_failed) == (15, 13, 2)
    assert [(failed.line, failed.text) for failed in found.texts.failed] == [(3, "text 3"), (8, "text 8")]
    read = [i for i, fault in enumerate(FAULTS) if fault is None]
    for place in found.places:
        at = KINDS["cross"].layers.index(place.layer), place.head
        wanted = [list(ROLES)[number] for number in roles[read, *at]]
        assert {name: round(13 * share) for name, share in found.roles(place)} == {name: wanted.count(name) for name in wanted}
        for number, of in enumerate(STATISTICS):
            row, own = found.at(place, of.name), values[number, 0, read, *at]
            own = own[~np.isnan(own)]
            if not len(own):
                assert row is None
                continue
            assert row is not None and row.n == len(own)
            half = 1.96 * own.std(ddof=1) / len(own) ** 0.5
            numbers = (own.mean(), own.std(ddof=1), own.mean() - half, own.mean() + half, own.min(), own.max(), 0.25)
            assert (row.mean, row.sd, *row.interval, row.min, row.max, row.uniform) == pytest.approx(numbers, abs=1e-12)
            assert list(row.counts) == np.histogram(own, of.edges)[0].tolist()
        examples = found.texts_of(place)
        assert examples is not None and examples.by == ("entropy_share" if place.head == 2 else "mass")
        own = values[NAMES.index(examples.by), 0, read, *at]
        mean = np.nanmean(own)
        ranked = [(i + 1, value) for i, value in zip(read, own.tolist(), strict=True) if value == value]
        for name, key in (
            ("highest", lambda v: -v),
            ("typical", lambda v, mean=mean: abs(v - mean)),
            ("unusual", lambda v, mean=mean: -abs(v - mean)),
        ):
            wanted = sorted(ranked, key=lambda one, key=key: key(one[1]))[:4]
            assert [(each.line, each.value) for each in getattr(examples, name)] == wanted
            assert all(each.text == f"text {each.line}" for each in getattr(examples, name))
    assert found.agreement["cross"][0][1] == 0.5


def test_texts_are_chosen_by_the_statistic_that_is_named_and_of_equal_ones_the_first(planted, tmp_path):
    parts, values, roles = planted
    found = merged(tmp_path, parts, TEXTS, KINDS, options={"k": 1, "by": "distance"})
    assert {examples.by for examples in found.examples} == {"distance"}
    with pytest.raises(OptionError, match="mass, hit_rate"):
        SurveyOptions(by="weight")
    alike = np.where(np.isnan(values), values, 0.5)
    examples = merged(tmp_path, [part(alike, roles, slice(0, 15))], TEXTS, KINDS).examples[0]
    there = np.flatnonzero(~np.isnan(values[NAMES.index("mass"), 0, :, 0, 0]))[:3] + 1
    assert [each.line for each in examples.highest] == [each.line for each in examples.typical] == there.tolist()


def verdict(seed: int, n: int) -> Verdict:
    rng = np.random.default_rng(seed)
    tops, rhos = rng.integers(0, 2, (2, n)).astype(float), rng.uniform(-1, 1, (2, n))
    rhos[1, :1] = np.nan
    maps = {name: Agreement(tuple(tops[i].tolist()), tuple(rhos[i].tolist())) for i, name in enumerate(("L1 H1", "rollout"))}
    return Verdict("cross", "word", tuple(range(n)), (0.2,) * n, maps, 3, 1)


def test_verdicts_are_those_over_all_of_them(planted, tmp_path):
    every = [verdict(seed, n) for seed, n in enumerate((3, 0, 5, 4, 6, 2, 7, 3))]
    paths = [tmp_path / f"verdict-{i}" for i in range(3)]
    for path, some in zip(paths, (every[:2], every[2:], []), strict=True):
        path.write_bytes(VerdictResults(digest="v", verdicts=tuple(some), missing={"gradient": "none"}).to_bytes())
    found = merged(tmp_path, planted[0], TEXTS, KINDS, verdicts=paths).verdict
    wanted = judging.merge_verdicts(every, {"gradient": "none"}, seed=0)
    assert to_plain(found) == to_plain(wanted)
    other = merged(tmp_path, planted[0], TEXTS, KINDS, verdicts=paths, options={"k": 1, "seed": 1}).verdict
    assert other is not None and other.maps[0].rho.interval != wanted.maps[0].rho.interval


@pytest.mark.parametrize("n", [150, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_damaged_file_is_read_or_refused_with_a_sentence(planted, tmp_path, n):
    path, rng = tmp_path / "block", random.Random(0)
    whole = planted[0][0].to_bytes(), VerdictResults(digest="v", verdicts=(verdict(0, 3),), missing={}).to_bytes()
    for i in range(n):
        data = rng.choice((bits, cut, doubled))(whole[i % 2], rng)
        path.write_bytes(data)
        for read in (read_description, read_verdicts, lambda path: [*read_arrays([path], "cross.values", 0)]):
            with suppress(SurveyError):
                read(path)
