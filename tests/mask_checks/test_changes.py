"""How much rows changed: independent of offset, scale and bans."""

import pytest
import torch

from transformer_viz.mask_checks.changes import Rows, is_no_distribution, row_change

INF, NAN = float("inf"), float("nan")


def rows(seed: int = 0) -> torch.Tensor:
    return torch.randn(3, 4, 11, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("factor", [1e-30, 1e-7, 1e6, 1e30])
def test_the_scale_does_not_matter(factor):
    torch.testing.assert_close(Rows.of(rows() * factor).change(rows(1) * factor), Rows.of(rows()).change(rows(1)))


@pytest.mark.parametrize("ban", [-1e9, torch.finfo(torch.float64).min, -INF, 1e9])
def test_a_banned_column_hides_nothing(ban):
    """Each change is at least half of what it is without the ban: a quartile moves by one place."""
    before, after = rows(), rows(1)
    plain = Rows.of(before[..., 1:]).change(after[..., 1:])
    before[..., 0] = after[..., 0] = ban
    assert bool((Rows.of(before).change(after) >= plain / 2).all())
    for n_banned in (2, 5, 8, 10):
        before[..., :n_banned] = after[..., :n_banned] = -1e9
        want = ((after - before).abs() / before.abs())[..., n_banned:].amin()
        assert bool((Rows.of(before).change(after) >= want / 5).all())


def test_a_number_is_measured_against_its_own_size_and_the_rows():
    """The lower quartile of five numbers is the second smallest; a row that is tiny by chance counts as large as others."""
    before = torch.tensor([[[8.0, 4.0, 2.0, 1.0, 0.5]]])
    assert Rows.of(before).sizes.tolist() == [[[8, 4, 2, 1, 1]]]
    assert Rows.of(before).change(before + torch.tensor([0, 0, 0, 0, 0.25])).tolist() == [[0.25]]
    before = torch.tensor([1.0, 2, 3]).repeat(1, 8, 1)
    before[0, 0] *= 1e-9
    assert float(Rows.of(before).sizes.min()) == 1
    before[0, :4] *= 1e-9
    assert float(Rows.of(before).sizes.min()) < 1e-8, "more than a quarter is no chance"


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        ([1.0, -INF], [1.0, -INF], 0),
        ([1.0, INF], [1.0, INF], 0),
        ([NAN, 1.0], [NAN, 1.0], 0),
        ([1.0, -INF], [1.5, -INF], 0.5),
        ([1.0, 2.0], [1.0, -INF], INF),
        ([1.0, -INF], [1.0, 2.0], INF),
        ([1.0, -INF], [1.0, INF], INF),
        ([1.0, 2.0], [1.0, NAN], INF),
        ([1.0, NAN], [1.0, 2.0], INF),
    ],
)
def test_infinities(before, after, want):
    assert float(row_change(torch.tensor(after), torch.tensor(before))) == want
    assert float(Rows.of(torch.tensor([[before]])).change(torch.tensor([[after]]))) == want


def test_what_is_no_distribution():
    found = [bool(is_no_distribution(torch.tensor(row))) for row in ([0.0, -INF], [0.0, NAN], [0.0, INF], [-INF, -INF])]
    assert found == [False, True, True, True]
