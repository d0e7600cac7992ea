"""Which attention is the encoder's, the decoder's and cross-attention, where neither names nor shapes tell it."""

from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from transformer_viz import trace_module
from transformer_viz.errors import OptionError
from transformer_viz.terms import Kind, Reason

WIDTH, PAD = 16, 0


class Flat(nn.Module):
    """Three attentions of torch side by side; the decoder's may be the encoder's."""

    def __init__(self, *, is_shared: bool) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(11, WIDTH), nn.Linear(WIDTH, 11)
        self.encoder, self.decoder, self.cross = (nn.MultiheadAttention(WIDTH, 2, batch_first=True) for _ in range(3))
        self.decoder = self.encoder if is_shared else self.decoder

    def attended(self, source: Tensor, target: Tensor) -> tuple[Tensor, dict[Kind, Tensor]]:
        """What it writes and the weights that torch gives when it is asked for them."""
        x, y, n = self.embedding(source), self.embedding(target), target.shape[1]
        asked = {"average_attn_weights": False}
        made, encoder = self.encoder(x, x, x, **asked)
        x = x + made
        made, decoder = self.decoder(y, y, y, attn_mask=torch.ones(n, n).triu(1).bool(), **asked)
        y = y + made
        made, cross = self.cross(y, x, x, **asked)
        return self.output(y + made), {"encoder": encoder, "decoder": decoder, "cross": cross}

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.attended(source, target)[0]


@pytest.mark.parametrize("is_shared", [False, True], ids=["apart", "shared"])
@pytest.mark.parametrize("target", [[1, 4, 5], [1, 4]], ids=["as long as the source", "shorter"])
def test_three_attentions_that_lie_flat(is_shared, target):
    torch.manual_seed(0)
    model, source = Flat(is_shared=is_shared).double(), [3, 4, 5]
    trace = trace_module(model, source, target)
    _, want = model.attended(torch.tensor([source]), torch.tensor([target]))
    assert set(trace.kinds) == set(want)
    for kind, weights in want.items():
        np.testing.assert_allclose(trace.attentions[kind].weights[0], weights.detach()[0].numpy(), atol=1e-6, err_msg=kind)


class Encoder(nn.Module):
    """Torch's own, which hides its padding; perhaps a second one beside it, which reads the embeddings too."""

    def __init__(self, *, has_second: bool = False) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(11, WIDTH), nn.Linear(WIDTH, 11)
        self.encoders = nn.ModuleList(
            nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, 4, 32, batch_first=True), 2) for _ in range(1 + has_second)
        )

    def forward(self, source: Tensor) -> Tensor:
        x = self.embedding(source)
        made = [encoder(x, src_key_padding_mask=source == PAD) for encoder in self.encoders]
        return self.output(sum(made[1:], cast(Tensor, made[0])))


@pytest.mark.parametrize("ids", [[3, 4, PAD], [3, PAD], [3, PAD, PAD, PAD], [PAD, PAD]])
def test_padding_makes_no_decoder_of_an_encoder(ids):
    """Nor is its second layer another encoder, where nothing may be looked at and each layer hands on what it read."""
    torch.manual_seed(0)
    trace = trace_module(Encoder(), ids, pad_id=PAD)
    assert trace.kinds == ("encoder",)
    assert trace.output_tokens == ()
    padding = [int(Reason.PADDING) * (number == PAD) for number in ids]
    assert trace.encoder.reasons.tolist() == [padding] * len(ids)
    sums = trace.encoder.weights.sum(-1)
    assert sums.shape == (2, 4, len(ids))
    np.testing.assert_allclose(sums, float(any(ids)), atol=1e-6)
    assert not trace.encoder.weights[..., np.array(ids) == PAD].any()


@pytest.mark.parametrize("ids", [[3, 4, PAD], [PAD, PAD]])
def test_an_encoder_beside_another_is_no_later_layer_of_it(ids):
    torch.manual_seed(0)
    with pytest.raises(OptionError, match=r"encoders\.1\.layers\.0.*another encoder than encoders\.0\.layers\.0"):
        trace_module(Encoder(has_second=True), ids, pad_id=PAD)


class TwoInALayer(nn.Module):
    """An encoder whose second layer has two attentions, beside each other or one after the other."""

    def __init__(self, *, are_beside: bool) -> None:
        super().__init__()
        self.are_beside, self.embedding, self.output = are_beside, nn.Embedding(11, WIDTH), nn.Linear(WIDTH, 11)
        made = [[nn.MultiheadAttention(WIDTH, 4, batch_first=True) for _ in range(n)] for n in (1, 2)]
        self.layers = nn.ModuleList(nn.ModuleList(layer) for layer in made)

    def forward(self, source: Tensor) -> Tensor:
        x = self.embedding(source)
        for layer in self.layers:
            read = x
            for attention in cast(nn.ModuleList, layer):
                now = read if self.are_beside else x
                x = x + attention(now, now, now)[0]
        return self.output(x)


def test_attention_beside_another_in_a_later_layer_is_no_layer_after_it():
    torch.manual_seed(0)
    with pytest.raises(OptionError, match=r"layers\.1\.1.*another encoder than layers\.1\.0"):
        trace_module(TwoInALayer(are_beside=True), [3, 4, 5])
    trace = trace_module(TwoInALayer(are_beside=False), [3, 4, 5])
    assert trace.made_by["modules"] == {"encoder": ["layers.0.0", "layers.1.0", "layers.1.1"]}


class Careful(Encoder):
    def forward(self, source: Tensor) -> Tensor:
        made = super().forward(source)
        assert bool(made.isfinite().all()), "lost"
        return made


def without_effect(part: str, made_by: type[Encoder] = Encoder, **options: bool) -> Encoder:
    """An encoder as some begin: its first attention writes zeros, whatever it looks at."""
    torch.manual_seed(0)
    model = made_by(**options)
    for encoder in model.encoders:
        attention = cast(nn.TransformerEncoder, encoder).layers[0].self_attn
        nn.init.zeros_(attention.out_proj.weight if part == "output" else attention.in_proj_weight[2 * WIDTH :])
    return model


@pytest.mark.parametrize("part", ["output", "values"])
def test_a_layer_that_writes_nothing_yet_is_of_the_same_encoder(part):
    with torch.no_grad():
        model = without_effect(part)
    trace = trace_module(model, [3, 4, 5])
    assert trace.encoder.weights.shape == (2, 4, 3, 3)
    assert trace.made_by["modules"] == {"encoder": [f"encoders.0.layers.{i}.self_attn" for i in range(2)]}


@pytest.mark.parametrize(("made_by", "has_second"), [(Encoder, True), (Careful, False)], ids=["two", "one that takes no NaN"])
def test_what_does_not_show_that_it_follows_is_refused(made_by, has_second):
    with torch.no_grad():
        model = without_effect("output", made_by, has_second=has_second)
    with pytest.raises(OptionError, match="another encoder than encoders\\.0\\.layers\\.0"):
        trace_module(model, [3, 4, 5])


def test_of_numbers_that_are_none_that_is_said():
    """And not that nothing depends on anything."""
    model = Encoder()
    with torch.no_grad():
        model.embedding.weight.fill_(torch.nan)
    with pytest.raises(OptionError, match="is not finite"):
        trace_module(model, [3, 4, 5])


def test_a_module_of_one_length_is_not_asked_how_it_is_called():
    class Three(Encoder):
        def forward(self, source: Tensor) -> Tensor:
            return super().forward(source) + torch.arange(3.0)[:, None]

    with pytest.raises(OptionError, match="another length of its source, it does not answer alike: Three failed") as caught:
        trace_module(Three(), [3, 4, 5])
    assert "Does it take" not in str(caught.value)
