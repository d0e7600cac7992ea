"""The seam: who is called for what, and that what comes back is what the model goes on with."""

from collections import Counter
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from transformer_viz.model.tap import RecordTap, ReplaceTap, Site, TapName, compose
from transformer_viz.trace.recorder import Recorder

NAMES: tuple[TapName, ...] = get_args(TapName)
IN_A_LAYER: tuple[TapName, ...] = (
    *("residual_before", "entered", "query", "key", "value", "scores", "mask", "weights", "heads", "added", "residual_after"),
)


class Counting:
    """Counts what it is called for; reads `names` and, where there is one, changes one intermediate."""

    def __init__(self, *names: TapName, change: Any = None) -> None:
        self.names = frozenset(names)
        self.change = change
        self.calls: Counter[tuple[str, int, TapName]] = Counter()
        self.order: list[TapName] = []

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        self.calls[site.kind, site.layer, name] += 1
        self.order.append(name)
        return value if self.change is None else self.change(site, name, value)


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
    assert tap.order[: 2 + len(IN_A_LAYER)] == ["state", *IN_A_LAYER, "state"]


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


def test_a_tap_is_not_called_for_what_it_does_not_read(model, ids):
    """The names from before are handed over always; the others only to those who ask."""
    tap = Counting("weights")
    forward(model, ids, tap)
    assert {name for _, _, name in tap.calls} <= {"scores", "mask", "weights", "heads"}


def test_among_composed_taps_each_sees_what_it_reads(model, ids):
    recorder, other = Recorder(("weights", "mask")), Counting("query", "state")
    forward(model, ids, compose(recorder, other))
    assert {name for _, _, name in other.calls} == {"query", "state"}
    assert recorder.gathered("cross", "weights") is not None and recorder.gathered("cross", "query") is None


def test_a_step_of_cached_decoding_hands_over_what_a_whole_pass_does(model, ids):
    """Every intermediate of its one row, with the keys and values of all rows so far."""
    target = ids(2, 1, 4)
    memory = model.encode(ids(1, 1, 6))
    passes: list[dict[tuple[str, int, TapName], list[Tensor]]] = [{}, {}]

    def keep(site: Site, name: TapName, value: Tensor) -> Tensor:
        passes[-1].setdefault((site.kind, site.layer, name), []).append(value)
        return value

    reading = model.start_decoding(memory)
    for token in target[0]:
        reading.read(token[None], tap=Counting(*NAMES, change=keep))
    steps, whole = passes.pop(), passes[-1]
    model.decode(target, memory, tap=Counting(*NAMES, change=keep))
    assert steps.keys() == whole.keys()
    for place, (value,) in whole.items():
        if place[2] in ("key", "value"):
            torch.testing.assert_close(steps[place][-1], value, atol=1e-12, rtol=0)
        elif place[2] not in ("scores", "mask"):  # of keys that are not there yet
            rows = [nn.functional.pad(row, (0, value.shape[-1] - row.shape[-1])) for row in steps[place]]
            torch.testing.assert_close(torch.cat(rows, -2), value, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["residual_before", "entered", "query", "key", "value", "added", "residual_after", "state"])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_what_comes_back_is_what_the_model_goes_on_with(model, ids, name, kind):
    def turned(site: Site, what: TapName, value: Tensor) -> Tensor:
        return value.flip(-1) if (site.kind, site.layer, what) == (kind, 1, name) else value

    before = forward(model, ids)
    torch.testing.assert_close(forward(model, ids, Counting(name)), before, atol=1e-12, rtol=0)
    assert float((forward(model, ids, Counting(name, change=turned)) - before).abs().max()) > 1e-3


def test_a_state_put_in_the_place_of_another_runs_patch_makes_it_that_run(model, ids):
    """The whole state of the second layer, of another target: what follows is the other run's."""
    memory = model.encode(ids(1, 1, 6))
    one, other = ids(2, 1, 4), ids(3, 1, 4)
    kept: dict[str, Tensor] = {}

    def keep(site: Site, name: TapName, value: Tensor) -> Tensor:
        if (site, name) == (Site("decoder", 1), "state"):
            kept["state"] = value
        return value

    def put(site: Site, name: TapName, value: Tensor) -> Tensor:
        return kept["state"] if (site, name) == (Site("decoder", 1), "state") else value

    want = model.decode(other, memory, tap=Counting("state", change=keep))
    assert not torch.allclose(model.decode(one, memory), want)
    torch.testing.assert_close(model.decode(one, memory, tap=Counting("state", change=put)), want, atol=1e-12, rtol=0)
