"""`trace_module` on modules with `torch.nn.MultiheadAttention`, against the weights that torch returns when asked."""

import warnings
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from transformer_viz import trace_module
from transformer_viz.errors import OptionError
from transformer_viz.terms import KINDS, Reason

WIDTH, HEADS, LAYERS = 12, (2, 3), (2, 3)
SOURCE, TARGET, PAD = [5, 9, 3, 7, 6, 1, 1], [2, 8, 4, 6, 3], 1
WORDS = [f"w{i}" for i in range(23)]


class Model(nn.Module):
    """Somebody's model: embeddings, `nn.Transformer`, a linear layer, masks of its own."""

    def __init__(self, *, n_heads: int = 3, batch_first: bool = True, hint: bool | None = None, **options: Any) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(23, WIDTH), nn.Linear(WIDTH, 23)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about nested tensors, which odd numbers of heads cannot have
            self.inner = nn.Transformer(WIDTH, n_heads, *LAYERS, 7, batch_first=batch_first, dropout=0.3, **options)
        self.batch_first, self.hint = batch_first, hint

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        is_padding = (source if self.batch_first else source.T) == PAD
        padding = is_padding if is_padding.any() else None
        future = torch.ones(target.shape[int(self.batch_first)], target.shape[int(self.batch_first)]).triu(1).bool()
        options = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding, "tgt_mask": future}
        return self.output(self.inner(self.embedding(source), self.embedding(target), tgt_is_causal=self.hint, **options))


def built(seed: int = 0, **options: Any) -> Model:
    torch.manual_seed(seed)
    model = Model(**options)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return model


def attended(attention: Any, query: Tensor, key: Tensor, masked: Tensor) -> tuple[Tensor, np.ndarray]:
    """What torch makes of one sentence when it is asked for the weights of each head, and those weights."""
    made, weights = attention(query, key, key, attn_mask=masked, need_weights=True, average_attn_weights=False)
    return made, weights.detach().numpy()


def expected(model: Model) -> dict[str, np.ndarray]:
    """Attention of all layers of a post-norm model, layer after layer, its sublayers called here one by one."""
    model, inner = model.eval().double(), cast(Any, model.inner)
    x, y = model.embedding(torch.tensor(SOURCE)), model.embedding(torch.tensor(TARGET))
    padding = torch.tensor(SOURCE) == PAD
    future = torch.ones(len(TARGET), len(TARGET)).triu(1).bool()
    found: dict[str, list[np.ndarray]] = {"encoder": [], "decoder": [], "cross": []}
    for layer in inner.encoder.layers:
        added, weights = attended(layer.self_attn, x, x, padding.expand(len(SOURCE), -1))
        found["encoder"].append(weights)
        x = layer.norm1(x + added)
        x = layer.norm2(x + layer.linear2(layer.linear1(x).relu()))
    x = inner.encoder.norm(x)
    for layer in inner.decoder.layers:
        added, weights = attended(layer.self_attn, y, y, future)
        found["decoder"].append(weights)
        y = layer.norm1(y + added)
        added, weights = attended(layer.multihead_attn, y, x, padding.expand(len(TARGET), -1))
        found["cross"].append(weights)
        y = layer.norm2(y + added)
        y = layer.norm3(y + layer.linear2(layer.linear1(y).relu()))
    return {kind: np.stack(layers) for kind, layers in found.items()}


@pytest.mark.parametrize("n_heads", HEADS, ids="{} heads".format)
@pytest.mark.parametrize("batch_first", [True, False], ids=["batch first", "length first"])
@pytest.mark.parametrize("training", [True, False], ids=["training", "eval"])
def test_every_weight_is_that_of_the_model(n_heads, batch_first, training):
    """An even number of heads, batch first, in eval mode is where torch's fast path would pass every hook by."""
    model = built(n_heads=n_heads, batch_first=batch_first).train(training)
    shape = (1, -1) if batch_first else (-1, 1)
    trace = trace_module(model, torch.tensor(SOURCE).reshape(shape), torch.tensor(TARGET).reshape(shape), pad_id=PAD)
    want = expected(built(n_heads=n_heads, batch_first=batch_first))
    for kind in KINDS:
        found = trace.attentions[kind].weights
        assert found.shape[:2] == (LAYERS[kind != "encoder"], n_heads)
        np.testing.assert_allclose(found, want[kind], atol=1e-5)


def test_masks_are_those_that_attention_was_given():
    trace = trace_module(built(), SOURCE, TARGET, pad_id=PAD)
    padding = [int(Reason.PADDING) * (number == PAD) for number in SOURCE]
    assert trace.encoder.reasons.tolist() == [padding] * len(SOURCE)
    assert trace.cross.reasons.tolist() == [padding] * len(TARGET)
    assert trace.decoder.reasons.tolist() == (np.triu(np.ones((5, 5), int), 1) * 2).tolist()
    unnamed = trace_module(built(), SOURCE, TARGET)
    assert set(np.unique(unnamed.encoder.reasons)) == {0, Reason.UNKNOWN}, "without pad_id nothing says that it is padding"


def test_a_forgotten_mask_is_not_drawn():
    """What the model should have been given is no matter."""
    model = built()
    call = lambda source, target: model.inner(model.embedding(source), model.embedding(target))  # noqa: E731
    trace = trace_module(model, SOURCE, TARGET, pad_id=PAD, call=call)
    assert not any(attention.mask.any() for attention in trace.attentions.values())
    assert (trace.decoder.weights > 0).all()


@pytest.mark.parametrize("kind", ["float", "bool", "hint"])
def test_a_mask_by_head_and_a_float_mask(kind):
    """An attention layer alone: additive and boolean masks for each head, and the hint behind which torch drops the mask."""
    torch.manual_seed(3)
    layer = nn.MultiheadAttention(WIDTH, 3, batch_first=True)
    embedding = nn.Embedding(23, WIDTH)
    holder = nn.ModuleDict({"layer": layer, "embedding": embedding})
    masked = torch.zeros(3, 5, 5, dtype=torch.bool)
    masked[1, 2, 3] = masked[2, :, 4] = True
    mask = torch.zeros(3, 5, 5).masked_fill(masked, -torch.inf) if kind == "float" else masked

    def call(target: Tensor) -> None:
        x, n = embedding(target), target.shape[1]
        if kind == "hint":  # a wrong hint: torch takes the causal mask instead of the empty one that is given
            layer(x, x, x, attn_mask=torch.zeros(n, n).bool(), is_causal=True, need_weights=False)
        else:
            layer(x, x, x, attn_mask=mask[:, :n, :n])

    trace = trace_module(holder, None, TARGET, call=call)
    want = torch.ones(5, 5).triu(1).bool() if kind == "hint" else masked
    assert trace.kinds == ("decoder",)
    np.testing.assert_array_equal(np.broadcast_to(trace.decoder.mask, (1, 3, 5, 5))[0], want.expand(3, 5, 5))
    x = embedding(torch.tensor(TARGET))
    np.testing.assert_allclose(trace.decoder.weights, attended(layer, x, x, want)[1][None], atol=1e-6)


def test_a_row_in_which_everything_is_masked_is_zeros_where_the_kernel_gives_zeros():
    layer, embedding = nn.MultiheadAttention(WIDTH, 3, batch_first=True), nn.Embedding(23, WIDTH)
    holder = nn.ModuleDict({"layer": layer, "embedding": embedding})
    masked = torch.zeros(5, 5, dtype=torch.bool)
    masked[2] = True

    def call(need_weights: bool) -> Any:
        def call(target: Tensor) -> Any:
            x, n = embedding(target), target.shape[1]
            return layer(x, x, x, attn_mask=masked[:n, :n], need_weights=need_weights)

        return call

    trace = trace_module(holder, None, TARGET, call=call(False))
    assert not trace.decoder.weights[:, :, 2].any()
    with pytest.raises(Exception, match=r"not finite.*everything is masked"):
        trace_module(holder, None, TARGET, call=call(True))


class Own(nn.Module):
    """A model of one's own around torch's attention, pre-norm, with `q` and `k` made apart."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(23, WIDTH), nn.LayerNorm(WIDTH)
        self.encoder, *attentions = (nn.MultiheadAttention(WIDTH, 2, batch_first=True) for _ in range(7))
        self.layers = nn.ModuleList([nn.ModuleList(attentions[i : i + 2]) for i in (0, 2, 4)])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x, y = self.embedding(source), self.embedding(target)
        x = x + self.encoder(x, x, x)[0]
        future = torch.ones(y.shape[1], y.shape[1]).triu(1).bool()
        for first, second in cast(Any, self.layers):
            y = y + first(self.norm(y), self.norm(y), y, attn_mask=future)[0]
            y = y + second(y, x, x)[0]
        return y


@pytest.mark.parametrize("n", [4, 5])
def test_kinds_are_told_from_use_not_from_names(n):
    """Also where source and target are equally long, so that shapes tell nothing."""
    trace = trace_module(Own(), SOURCE[:n], TARGET[:n])
    sizes = {kind: trace.attentions[kind].weights.shape for kind in trace.kinds}
    assert sizes == {"encoder": (1, 2, n, n), "decoder": (3, 2, n, n), "cross": (3, 2, n, n)}
    assert trace.decoder.mask.any()
    assert not trace.encoder.mask.any()
    assert trace.steps == (), "what it returns are hidden states"


def test_what_cannot_be_labelled_is_refused():
    embedding = nn.Embedding(23, WIDTH)
    for options in ({"add_bias_kv": True}, {"add_zero_attn": True}):
        layer = nn.MultiheadAttention(WIDTH, 2, batch_first=True, **options)
        with pytest.raises(OptionError, match="adds a key that is no token"):
            trace_module(layer, None, TARGET, call=lambda target: layer(*[embedding(target)] * 3))  # noqa: B023


def test_keys_that_are_no_tokens_are_counted():
    layer, embedding = nn.MultiheadAttention(WIDTH, 2, batch_first=True), nn.Embedding(23, WIDTH)

    def call(target: Tensor) -> Tensor:
        x = embedding(target)
        keys = torch.cat([torch.ones(len(x), 2, WIDTH), x], 1)
        return layer(x, keys, keys)[0]

    n = len(TARGET)
    words = f"{n} rows and {n + 2} columns for .* of the target; it adds 2 keys that are no tokens"
    with pytest.raises(OptionError, match=words):
        trace_module(layer, None, TARGET, call=call)


def test_a_class_of_ones_own_made_of_torchs():
    class Mine(nn.MultiheadAttention):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return super().forward(*args, **kwargs)

    layer, embedding = Mine(WIDTH, 2, batch_first=True), nn.Embedding(23, WIDTH)
    trace = trace_module(layer, None, TARGET, call=lambda target: layer(*[embedding(target)] * 3))
    x = embedding(torch.tensor([TARGET]))
    want = nn.MultiheadAttention.forward(layer, x, x, x, average_attn_weights=False)[1]
    assert want is not None
    np.testing.assert_allclose(trace.decoder.weights[0], want[0].detach().numpy(), atol=1e-6)
