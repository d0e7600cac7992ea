"""What the recordings notice: a change of 1e-4 anywhere, NaN that move, another rank; and not how a processor rounds."""

from pathlib import Path

import numpy as np

from tests.recorded import fixture


def test_what_is_written_is_read_and_a_small_change_is_noticed(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).random((3, 4, 31, 17), np.float32)
    weights[0, 0, 0, 0] = np.nan
    result = {"weights": weights, "steps": [{"token": "a", "rank": 0, "p": 0.25}, {"token": "b", "rank": 3, "p": None}]}
    fixture.write(tmp_path / "two", {"one": fixture.kept(result), "in float64": fixture.kept(result)})
    read = fixture.read(tmp_path / "two")
    assert [*read["one"]] == ["weights", "steps.token", "steps.rank", "steps.p"]
    for title, least in (("one", 1e-4), ("in float64", 1e-10)):
        assert not fixture.differences(title, read[title], fixture.kept(result))
        for place in ((0, 0, 0, 1), (1, 2, 17, 3), (2, 3, 30, 16)):
            changed = weights.astype(float)
            changed[place] += least
            assert fixture.differences(title, read[title], fixture.kept(result | {"weights": changed}))
    noise = weights.astype(float) + np.random.default_rng(1).uniform(-1e-7, 1e-7, weights.shape)
    assert not fixture.differences("one", read["one"], fixture.kept(result | {"weights": noise}))
    moved = weights.copy()
    moved[0, 0, 0, :2] = weights[0, 0, 0, 1::-1]
    others = ({"weights": moved}, {"weights": weights[:2]}, {"steps": [{"token": "a", "rank": 1, "p": 0.25}]}, {"more": 1})
    for other in others:
        assert fixture.differences("one", read["one"], fixture.kept(result | other))
