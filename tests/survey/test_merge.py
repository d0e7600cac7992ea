"""Blocks made into one: planted numbers against all of them at once, and the same bits whatever computed the blocks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from transformer_viz.analysis.survey.merge import merge
from transformer_viz.analysis.survey.partial import KindPartial, Partial
from transformer_viz.analysis.survey.result import Failed
from transformer_viz.analysis.survey.statistic import NAMES, STATISTICS, check_by, preferred
from transformer_viz.analysis.survey.verdicts import VerdictPartial, load_verdicts
from transformer_viz.surveying.on_block import survey_block
from transformer_viz.surveying.options import SurveyOptions

from tests.survey.runs import MODEL, blocks_of, merged
from transformer_viz.analysis.head_names import ROLES
from transformer_viz.attribution.result import verdict as judging
from transformer_viz.attribution.result.verdict import Agreement, Verdict
from transformer_viz.errors import OptionError, SurveyError

LAYERS, HEADS = (0, 2), 3


def values_of(n: int, seed: int = 0) -> np.ndarray:
    """(statistic, text, layer, head) between 0 and 1; a tenth is missing, and `mass` everywhere in the last head."""
    rng = np.random.default_rng(seed)
    found = rng.random((len(NAMES), n, len(LAYERS), HEADS))
    found[rng.random(found.shape) < 0.1] = np.nan
    found[NAMES.index("mass"), :, :, -1] = np.nan
    return found


def kind_of(values: np.ndarray, roles: np.ndarray, by: str | None = None) -> KindPartial:
    """What these texts leave, each number by numpy's own function."""
    n_bins = max(len(each.edges) for each in STATISTICS) - 1
    counts = np.zeros((*values.shape[:1], *values.shape[2:], n_bins), np.int64)
    for place in np.ndindex(values.shape[0], *values.shape[2:]):
        edges = STATISTICS[place[0]].edges
        own = values[place[0], :, place[1], place[2]]
        counts[place][: len(edges) - 1] = np.histogram(own[~np.isnan(own)], edges)[0]
    there, n_heads = ~np.isnan(values), len(LAYERS) * HEADS
    return KindPartial(
        layers=LAYERS,
        n_heads=HEADS,
        values_of=preferred(by),
        n=there.sum(1),
        sums=np.nansum(values, 1),
        squares=np.nansum((values - (np.nansum(values, 1) / np.maximum(there.sum(1), 1))[:, None]) ** 2, 1),
        lowest=np.where(there, values, np.inf).min(1, initial=np.inf),
        highest=np.where(there, values, -np.inf).max(1, initial=-np.inf),
        even=np.where(there, 0.25, 0).sum(1),
        counts=counts,
        roles=np.stack([(roles == number).sum(0) for number in range(len(ROLES))]),
        agreed=np.full((n_heads, n_heads), 0.5 * values.shape[1]),
        compared=np.full((n_heads, n_heads), values.shape[1]),
        values=values[[NAMES.index(name) for name in preferred(by)]],
    )


@pytest.fixture
def planted():
    """Blocks of 5, 1, 0 and 7 texts, and all values, roles and lines at once."""
    values, roles = values_of(13), np.random.default_rng(1).integers(0, len(ROLES), (13, len(LAYERS), HEADS))
    lines = [*range(2, 7), 9, *range(11, 18)]
    parts = []
    for first, last in ((0, 5), (5, 6), (6, 6), (6, 13)):
        some = slice(first, last)
        kind = kind_of(values[:, some], roles[some])
        own = tuple(lines[some])
        failed = tuple(Failed(line=line, text="x", why="y") for line in ((7, 8) if first == last else ()))
        texts = tuple(f"text {line}" for line in own)
        parts.append(Partial(lines=own, texts=texts, failed=failed, kinds={"cross": kind}, outputs=None))
    return parts, values, roles, lines


def test_planted_blocks_are_all_texts_at_once(planted, tmp_path):
    parts, values, roles, lines = planted
    found = merged(tmp_path, parts, k=4)
    assert (found.texts.n, found.texts.n_read, found.texts.n_failed) == (15, 13, 2)
    assert [each.line for each in found.texts.failed] == [7, 8]
    for head in found.heads:
        place = LAYERS.index(head.layer), head.head
        wanted = [list(ROLES)[number] for number in roles[:, *place]]
        assert head.roles == {name: wanted.count(name) for name in wanted}
        for name, one in head.statistics.items():
            own = values[NAMES.index(name), :, *place]
            own = own[~np.isnan(own)]
            if not len(own):
                assert one is None
                continue
            assert one is not None and one.n == len(own)
            half = 1.96 * own.std(ddof=1) / len(own) ** 0.5
            numbers = (own.mean(), own.std(ddof=1), own.mean() - half, own.mean() + half, own.min(), own.max(), 0.25)
            assert (one.mean, one.sd, one.low, one.high, one.min, one.max, one.even) == pytest.approx(numbers, abs=1e-12)
            assert list(one.counts) == np.histogram(own, found.statistic(name).edges)[0].tolist()
        assert head.by == ("entropy_share" if head.head == HEADS - 1 else "mass")
        own = values[NAMES.index(head.by), :, *place]
        mean = np.nanmean(own)
        ranked = [(line, value) for line, value in zip(lines, own.tolist(), strict=True) if value == value]
        for name, key in (
            ("highest", lambda v: -v),
            ("typical", lambda v, mean=mean: abs(v - mean)),
            ("unusual", lambda v, mean=mean: -abs(v - mean)),
        ):
            wanted = sorted(ranked, key=lambda one, key=key: key(one[1]))[:4]
            assert [(each.line, each.value) for each in getattr(head, name)] == wanted
            assert all(each.text == f"text {each.line}" for each in getattr(head, name))
    assert found.agreement["cross"][0][1] == 0.5


def test_of_equal_texts_the_first_lines_are_kept(planted, tmp_path):
    parts, _, _, lines = planted
    alike = [
        replace(part, kinds={"cross": replace(part.kinds["cross"], values=np.full_like(part.kinds["cross"].values, 0.5))})
        for part in parts
    ]
    head = merged(tmp_path, alike, k=3).heads[0]
    assert [each.line for each in head.highest] == [each.line for each in head.typical] == lines[:3]


def test_texts_are_chosen_by_the_statistic_that_is_named(planted, tmp_path):
    _, values, roles, lines = planted
    part = Partial(
        lines=tuple(lines), texts=("",) * 13, failed=(), kinds={"cross": kind_of(values, roles, "distance")}, outputs=None
    )
    found = merged(tmp_path, [part], by="distance")
    assert {head.by for head in found.heads} == {"distance"}
    check_by("distance"), check_by(None)
    with pytest.raises(OptionError, match="mass, hit_rate"):
        check_by("weight")


def test_the_order_of_computing_changes_no_bit(make_model, make_tiny, tmp_path):
    """Blocks computed in any order, some of them twice, by models loaded anew."""
    texts = ["helo", "abcd", "ZZ", "h", "lo hel", "cab", "e", "bad cab", "helo", "dab"]
    blocks, how = blocks_of(texts, 3), SurveyOptions(k=2)
    ways = []
    for order in ((0, 1, 2, 3), (3, 1, 0, 2), (2, 2, 3, 1, 0)):
        model, parts = make_tiny(make_model(4)), {}
        for i in order:
            parts[i] = survey_block(model, blocks[i], how)
        ways.append(merged(tmp_path, [parts[i] for i in sorted(parts)], k=2).to_json())
    assert len(set(ways)) == 1


def test_blocks_of_two_surveys_are_refused(planted, tmp_path):
    parts, *_ = planted
    other = replace(parts[1], kinds={"cross": replace(parts[1].kinds["cross"], layers=(0, 1))})
    with pytest.raises(SurveyError, match="not of one survey"):
        merged(tmp_path, [parts[0], other])


def verdict(seed: int, n: int) -> Verdict:
    rng = np.random.default_rng(seed)
    maps = {name: Agreement(rng.integers(0, 2, n).astype(float), rng.uniform(-1, 1, n)) for name in ("L1 H1", "rollout")}
    if n:
        maps["rollout"].rho[0] = np.nan
    return Verdict("cross", "word", np.arange(n), np.full(n, 0.2), maps, 3, 1)


def test_verdicts_are_those_over_all_of_them(planted, tmp_path):
    parts, *_ = planted
    every = [verdict(seed, n) for seed, n in enumerate((3, 0, 5, 4, 6, 2, 7, 3))]
    paths = []
    for i, some in enumerate((every[:2], every[2:], [])):
        path = tmp_path / f"verdict-{i}"
        path.write_bytes(VerdictPartial(verdicts=tuple(some), missing={"gradient": "none"}).to_bytes(f"v{i}"))
        load_verdicts(path, f"v{i}")
        paths.append(path)
    found = merged(tmp_path, parts, paths).verdict
    wanted = judging.over(every, {"gradient": "none"}, seed=0)
    assert repr(found) == repr(wanted)
    with pytest.raises(SurveyError, match="result of something else"):
        load_verdicts(paths[0], "v1")
    about: Any = {"model": MODEL, "source": "", "digest": "", "options": {"seed": 1}, "k": 1, "by": None}
    other = merge([tmp_path / f"{i}.safetensors" for i in range(4)], paths, **about).verdict
    assert other is not None and other.maps[0].rho.interval != wanted.maps[0].rho.interval
