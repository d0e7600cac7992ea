"""The seam: who is called for what, and that what comes back is what the model goes on with."""

from collections import Counter
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from transformer_viz.model.tap import RecordTap, ReplaceTap, Site, TapName, compose
from transformer_viz.trace.recorder import Recorder

NAMES: tuple[TapName, ...] = get_args(TapName)
IN_A_LAYER: tuple[TapName, ...] = (
    *("residual_before", "entered", "query", "key", "value", "scores", "mask", "weights", "heads", "added", "residual_after"),
)


class Counting:
    """Counts what it is called for, which is `names`."""

    def __init__(self, *names: TapName) -> None:
        self.names = frozenset(names)
        self.calls: Counter[tuple[str, int, TapName]] = Counter()

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        self.calls[site.kind, site.layer, name] += 1
        return value


@pytest.fixture(scope="module")
def model(make_model: Any) -> Any:
    return make_model(5)


def forward(model: Any, ids: Any, tap: Any = None) -> Tensor:
    return model(ids(1, 2, 6), ids(2, 2, 4), tap=tap)


def test_one_layer_hands_over_each_name_once_and_in_the_order_of_the_table(model, ids):
    tap = Counting(*NAMES)
    forward(model, ids, tap)
    want = {
        (kind, layer, name)
        for kind, n in (("encoder", 2), ("decoder", 3), ("cross", 3))
        for layer in range(n)
        for name in IN_A_LAYER
    }
    want |= {(kind, layer, "state") for kind, n in (("encoder", 2), ("decoder", 3)) for layer in range(-1, n)}
    assert tap.calls == dict.fromkeys(want, 1)
    assert [name for _, _, name in tap.calls][: 2 + len(IN_A_LAYER)] == ["state", *IN_A_LAYER, "state"]


def test_what_is_changed_is_kept_as_the_model_goes_on_with_it(model, ids):
    before, after = RecordTap("weights", "state"), RecordTap("weights")
    forward(model, ids, before)
    plain = {site: kept["weights"] for site, kept in before.kept.items() if "weights" in kept}
    uniform = ReplaceTap("weights", lambda site, value: value * 0 + 1 / value.shape[-1] if site == ("cross", 1, 0) else value)
    forward(model, ids, compose(uniform, after))
    assert list(after.kept) == list(plain) and set(before.kept) - set(plain) == {Site("encoder", -1), Site("decoder", -1)}
    changed = {site for site, kept in after.kept.items() if not torch.equal(kept["weights"], plain[site])}
    assert changed == {Site("cross", 1), Site("decoder", 2), Site("cross", 2)}
    assert torch.allclose(after.kept[Site("cross", 1)]["weights"], torch.tensor(1 / 6).double())


def test_among_composed_taps_each_sees_what_it_reads(model, ids):
    recorder, other = Recorder(("weights", "mask")), Counting("query", "state")
    forward(model, ids, compose(recorder, other))
    assert {name for _, _, name in other.calls} == {"query", "state"}
    assert recorder.gathered("cross", "weights") is not None and recorder.gathered("cross", "query") is None


@pytest.mark.parametrize("name", ["residual_before", "entered", "query", "key", "value", "added", "residual_after", "state"])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_what_comes_back_is_what_the_model_goes_on_with(model, ids, name, kind):
    turned = ReplaceTap(name, lambda site, value: value.flip(-1) if site[:2] == (kind, 1) else value)
    before = forward(model, ids)
    torch.testing.assert_close(forward(model, ids, Counting(name)), before, atol=1e-12, rtol=0)
    assert float((forward(model, ids, turned) - before).abs().max()) > 1e-3


def test_a_state_put_in_the_place_of_another_runs_patch_makes_it_that_run(model, ids):
    """The whole state of the second layer, of another target: what follows is the other run's."""
    memory = model.encode(ids(1, 1, 6))
    one, other = ids(2, 1, 4), ids(3, 1, 4)
    kept, place = RecordTap("state"), Site("decoder", 1)
    want = model.decode(other, memory, tap=kept)
    put = ReplaceTap("state", lambda site, value: kept.kept[place]["state"] if site == place else value)
    assert not torch.allclose(model.decode(one, memory), want)
    torch.testing.assert_close(model.decode(one, memory, tap=put), want, atol=1e-12, rtol=0)
