"""What must hold for any weights: no leak from the future or from padding, with and without a tap."""

from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_viz.trace.recorder import Recorder

BATCH, SOURCE, TARGET = 2, 11, 7
KINDS = ("encoder", "decoder", "cross")
EXACT: dict[str, Any] = {"atol": 1e-12, "rtol": 0}


@pytest.fixture(scope="module", params=["pre", "post", "residual-post"])
def model(request, make_model):
    return make_model(7, norm=request.param, final_norm=request.param == "pre")


def padding_of(*lengths: int, width: int) -> Tensor:
    return torch.arange(width) >= torch.tensor(lengths)[:, None]


def recorded(model, *arguments) -> tuple[Tensor, Any]:
    recorder = Recorder()
    return model(*arguments, tap=recorder), recorder


def test_rows_sum_to_one_over_allowed_keys_and_are_exactly_zero_elsewhere(model, ids):
    source_padding, target_padding = padding_of(11, 8, width=SOURCE), padding_of(5, 7, width=TARGET)
    _, recorder = recorded(model, ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET), source_padding, target_padding)
    masked = {
        "encoder": source_padding[:, None, :].expand(BATCH, SOURCE, SOURCE),
        "cross": source_padding[:, None, :].expand(BATCH, TARGET, SOURCE),
        "decoder": target_padding[:, None, :] | torch.ones(TARGET, TARGET).triu(1).bool(),
    }
    for kind, n_layers in (("encoder", 2), ("decoder", 3), ("cross", 3)):
        weights, mask = recorder.gathered(kind, "weights"), recorder.gathered(kind, "mask")
        assert weights.shape == (BATCH, n_layers, 5, *masked[kind].shape[1:])
        where = masked[kind][:, None, None].expand_as(weights)
        assert torch.equal(mask.expand_as(weights), where)
        assert torch.equal(weights == 0, where)
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]), **EXACT)


@pytest.mark.parametrize("position", [1, 4, 6])
def test_a_later_target_token_changes_no_earlier_logit_and_no_earlier_row(model, ids, position):
    source, target = ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET)
    changed = target.clone()
    changed[:, position] = (target[:, position] - 4 + 1) % 9 + 4
    (a, first), (b, second) = recorded(model, source, target), recorded(model, source, changed)
    for kind in ("decoder", "cross"):
        before, after = first.gathered(kind, "weights"), second.gathered(kind, "weights")
        assert torch.equal(before[..., :position, :], after[..., :position, :])
        assert not torch.equal(before[..., position:, :], after[..., position:, :])
    for one, other in ((a, b), (model(source, target), model(source, changed))):
        torch.testing.assert_close(one[:, :position], other[:, :position], **EXACT)
        assert (one[:, position] != other[:, position]).any(-1).all()


@pytest.mark.parametrize("tap", [False, True])
@pytest.mark.parametrize("filler", [0, 5])
def test_padding_columns_change_nothing(model, ids, tap, filler):
    """Whatever id stands in the padding: each sentence of a padded batch has the logits and weights that it has alone."""
    lengths = ((11, 4), (6, 7))
    source, target = ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET)
    for i, (n_source, n_target) in enumerate(lengths):
        source[i, n_source:], target[i, n_target:] = filler, filler
    paddings = padding_of(11, 6, width=SOURCE), padding_of(4, 7, width=TARGET)
    wide: Any = Recorder() if tap else None
    padded = model(source, target, *paddings, tap=wide)
    for i, (n_source, n_target) in enumerate(lengths):
        alone, narrow = recorded(model, source[i : i + 1, :n_source], target[i : i + 1, :n_target])
        torch.testing.assert_close(padded[i, :n_target], alone[0], **EXACT)
        for kind in KINDS if tap else ():
            want = narrow.gathered(kind, "weights")[0]
            torch.testing.assert_close(
                wide.gathered(kind, "weights")[i, ..., : want.shape[-2], : want.shape[-1]], want, **EXACT
            )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tap", [None, Recorder()], ids=["fused", "explicit"])
def test_a_sentence_of_padding_alone_is_never_nan(make_model, ids, dtype, tap):
    model = make_model(9).to(dtype)
    logits = model(ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET), padding_of(0, 11, width=SOURCE), tap=tap)
    assert logits.isfinite().all()


def test_nothing_is_left_on_the_modules(make_model, ids):
    """Guards attention stored on a module: two people share one model."""
    model = make_model(10)

    def state() -> dict[str, set[str]]:
        return {name: set(vars(module)) for name, module in model.named_modules()}

    before = state()
    recorded(model, ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET))
    assert state() == before
