"""What must hold for any weights: no leak from the future or from padding, and the cache changes nothing."""

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
    future = torch.ones(TARGET, TARGET).triu(1).bool()
    masked = {
        "encoder": source_padding[:, None, :].expand(BATCH, SOURCE, SOURCE),
        "cross": source_padding[:, None, :].expand(BATCH, TARGET, SOURCE),
        "decoder": target_padding[:, None, :] | future,
    }
    layers = {"encoder": 2, "decoder": 3, "cross": 3}
    for kind in KINDS:
        weights, mask = recorder.gathered(kind, "weights"), recorder.gathered(kind, "mask")
        where = masked[kind][:, None, None]
        assert weights.shape == (BATCH, layers[kind], 5, *masked[kind].shape[1:])
        assert torch.equal(mask.expand_as(weights), where.expand_as(weights))
        assert (weights[where.expand_as(weights)] == 0).all()
        assert (weights[~where.expand_as(weights)] > 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]), **EXACT)


@pytest.mark.parametrize("position", [1, 4, 6])
@pytest.mark.parametrize("tap", [False, True])
def test_a_later_target_token_changes_no_earlier_logit_and_no_earlier_row(model, ids, position, tap):
    source, target = ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET)
    changed = target.clone()
    changed[:, position] = (target[:, position] - 4 + 1) % 9 + 4
    if not tap:
        a, b = model(source, target), model(source, changed)
    else:
        (a, first), (b, second) = recorded(model, source, target), recorded(model, source, changed)
        for kind in ("decoder", "cross"):
            before, after = first.gathered(kind, "weights"), second.gathered(kind, "weights")
            assert torch.equal(before[..., :position, :], after[..., :position, :])
            assert not torch.equal(before[..., position:, :], after[..., position:, :])
    torch.testing.assert_close(a[:, :position], b[:, :position], **EXACT)
    assert (a[:, position] != b[:, position]).any(-1).all()


@pytest.mark.parametrize("tap", [False, True])
@pytest.mark.parametrize("filler", [0, 5])
def test_padding_columns_change_nothing(model, ids, tap, filler):
    """Whatever id stands in the padding: logits, memory and weights of the real tokens stay the same."""
    source, target = ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET)
    wide_source = torch.cat([source, torch.full((BATCH, 3), filler)], 1)
    wide_target = torch.cat([target, torch.full((BATCH, 2), filler)], 1)
    source_padding, target_padding = padding_of(11, 11, width=14), padding_of(7, 7, width=9)
    narrow: Any = Recorder(names=("weights",))
    wide: Any = Recorder(names=("weights",))
    plain = model(source, target, tap=narrow if tap else None)
    padded = model(wide_source, wide_target, source_padding, target_padding, tap=wide if tap else None)
    torch.testing.assert_close(padded[:, :TARGET], plain, **EXACT)
    for kind in KINDS if tap else ():
        want = narrow.gathered(kind, "weights")
        got = wide.gathered(kind, "weights")[..., : want.shape[-2], : want.shape[-1]]
        torch.testing.assert_close(got, want, **EXACT)


@pytest.mark.parametrize("tap", [False, True])
def test_a_row_of_a_padded_batch_is_the_sentence_alone(model, ids, tap):
    source, target = ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET)
    recorder = Recorder(names=("weights",)) if tap else None
    batch = model(source, target, padding_of(11, 6, width=SOURCE), padding_of(4, 7, width=TARGET), tap=recorder)
    torch.testing.assert_close(batch[0, :4], model(source[:1], target[:1, :4])[0], **EXACT)
    torch.testing.assert_close(batch[1], model(source[1:, :6], target[1:])[0], **EXACT)


def test_reordering_the_cache_follows_the_rows(model, ids):
    """What beam search needs: rows swap, repeat and die, cross-attention keys with them."""
    source, target = ids(1, 3, SOURCE), ids(2, 3, TARGET)
    source_padding = padding_of(11, 7, 9, width=SOURCE)
    decoder = model.start_decoding(model.encode(source, source_padding), source_padding)
    for t in range(4):
        decoder.read(target[:, t])
    rows = torch.tensor([2, 0, 0, 1, 2])
    decoder.reorder(rows)
    got = decoder.read(target[rows][:, 4])
    want = model(source[rows], target[rows][:, :5], source_padding[rows])
    torch.testing.assert_close(got, want[:, 4], **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tap", [False, True])
def test_a_sentence_of_padding_alone_is_never_nan(make_model, ids, dtype, tap):
    model = make_model(9).to(dtype)
    padding = padding_of(0, 11, width=SOURCE)
    logits = model(ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET), padding, tap=Recorder() if tap else None)
    assert logits.isfinite().all()


def test_nothing_is_left_on_the_modules(make_model, ids):
    """Guards attention stored on a module: two people share one model."""
    model = make_model(10)

    def state() -> dict[str, set[str]]:
        return {name: set(vars(module)) for name, module in model.named_modules()}

    before = state()
    recorded(model, ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET))
    assert state() == before


def test_dropout_acts_in_train_mode_only(make_model, ids):
    model = make_model(11, dropout=0.5)
    source, target = ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET)
    assert torch.equal(model(source, target), model(source, target))
    model.train()
    torch.manual_seed(0)
    assert not torch.equal(model(source, target), model(source, target))
