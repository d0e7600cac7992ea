"""The whole model against code that it shares nothing with: torch.nn's layers, and plain numpy formulas."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.plain_transformer import PlainTransformer
from transformer_viz.model import variants

BATCH, SOURCE, TARGET = 2, 11, 7
TORCH_SIZES = {"d_model": 20, "n_heads": 5, "d_k": None, "d_v": None}


def inputs(ids, with_padding: bool) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    source_padding = target_padding = None
    if with_padding:
        source_padding = torch.zeros(BATCH, SOURCE, dtype=torch.bool)
        target_padding = torch.zeros(BATCH, TARGET, dtype=torch.bool)
        source_padding[0, 8:] = target_padding[1, 5:] = True
    return ids(1, BATCH, SOURCE), ids(2, BATCH, TARGET), source_padding, target_padding


# torch's own layers


def copy_attention(theirs: nn.MultiheadAttention, ours: Any) -> None:
    theirs.in_proj_weight.data = torch.cat([ours.query.weight, ours.key.weight, ours.value.weight])
    theirs.in_proj_bias.data = torch.cat([ours.query.bias, ours.key.bias, ours.value.bias])
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def torch_stacks(model: Any, norm_first: bool) -> tuple[nn.TransformerEncoder, nn.TransformerDecoder]:
    c = model.config
    sizes: dict[str, Any] = {"d_model": c.d_model, "nhead": c.n_heads, "dim_feedforward": c.d_ff, "dropout": 0.0}
    options: dict[str, Any] = {
        "activation": c.activation,
        "batch_first": True,
        "norm_first": norm_first,
        "dtype": torch.float64,
    }

    def final() -> Any:
        return nn.LayerNorm(c.d_model, dtype=torch.float64) if c.final_norm else None

    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**sizes, **options), c.n_encoder_layers, norm=final(), enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**sizes, **options), c.n_decoder_layers, norm=final())
    for theirs, ours in zip([*encoder.layers, *decoder.layers], [*model.encoder, *model.decoder], strict=True):
        copy_attention(theirs.self_attn, ours.attention)
        theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
        theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
        norms = [ours.around_attention, ours.around_feed_forward]
        if hasattr(ours, "cross_attention"):
            copy_attention(theirs.multihead_attn, ours.cross_attention)
            norms.insert(1, ours.around_cross_attention)
        for number, around in enumerate(norms, start=1):
            getattr(theirs, f"norm{number}").load_state_dict(around.norm.state_dict())
    if encoder.norm is not None and decoder.norm is not None:
        encoder.norm.load_state_dict(model.encoder_norm.state_dict())
        decoder.norm.load_state_dict(model.decoder_norm.state_dict())
    return encoder, decoder


def sinusoid_row(position: int, width: int, base: float) -> list[float]:
    angles = [position / base ** (2 * (i // 2) / width) for i in range(width)]
    return [math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angles)]


def embedded(model: Any, embedding: nn.Embedding, ids: Tensor) -> Tensor:
    c = model.config
    rows = [sinusoid_row(p, c.d_model, c.sinusoid_base) for p in range(ids.shape[1])]
    return embedding.weight[ids] + torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("with_padding", [False, True])
@pytest.mark.parametrize("variant", ["pre-norm", "post-norm", "torch-reference"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_variant_is_torch_nn_transformer(make_model, ids, variant, with_padding, activation):
    settings = {**variants.settings(variant), **TORCH_SIZES, "activation": activation}
    model = make_model(3, **settings)
    source, target, source_padding, target_padding = inputs(ids, with_padding)
    encoder, decoder = torch_stacks(model, norm_first=variant == "pre-norm")
    with torch.no_grad():
        memory = encoder(embedded(model, model.source_embedding, source), src_key_padding_mask=source_padding)
        states = decoder(
            embedded(model, model.target_embedding, target),
            memory,
            tgt_mask=torch.ones(TARGET, TARGET).triu(1).bool(),
            tgt_key_padding_mask=target_padding,
            memory_key_padding_mask=source_padding,
        )
        want = model.output(states)
    torch.testing.assert_close(model.encode(source, source_padding), memory, atol=1e-12, rtol=0)
    got = model(source, target, source_padding, target_padding)
    assert float(got.std()) > 0.1
    torch.testing.assert_close(got, want, atol=1e-12, rtol=0)


# Plain numpy formulas, one sentence at a time


SMALL = {"d_model": 22, "n_heads": 5, "d_ff": 17, "n_encoder_layers": 2, "n_decoder_layers": 3}


@pytest.mark.parametrize(
    "settings",
    [
        variants.settings("residual-post-norm") | {"d_model": 22, "n_heads": 5, "d_ff": 17, "n_decoder_layers": 3},
        variants.settings("pre-norm"),
        variants.settings("post-norm"),
        {"norm": "pre", "final_norm": False, "norm_affine": False, "embedding_scale": "both"},
        {"norm": "post", "final_norm": True, "attention_bias": False, "feed_forward_bias": False, "output_bias": False},
        {"norm": "residual-post", "position": "learned", "activation": "gelu", "d_k": 11, "d_v": None},
        {"position": "none", "initialization": "xavier"},
        variants.settings("bias-free") | SMALL | {"d_k": 7, "d_v": 7},
        variants.settings("torch-reference") | SMALL,
        variants.settings("shared-norm") | SMALL,
        {"norm": "pre", "shared_norm": True, "embedding_norm": True, "norm_affine": False},
    ],
    ids=[
        *("residual-post-norm", "pre-norm", "post-norm", "no affine", "no biases", "learned gelu", "no positions"),
        *("bias-free", "torch-reference", "shared-norm", "shared and not affine"),
    ],
)
@pytest.mark.parametrize("with_padding", [False, True])
def test_every_switch_is_its_plain_formula(make_model, ids, settings, with_padding):
    model = make_model(5, **settings)
    source, target, source_padding, target_padding = inputs(ids, with_padding)
    got = model(source, target, source_padding, target_padding).numpy()
    assert ("positions.table" in model.state_dict()) == (settings.get("position") == "learned"), "sinusoids are in no file"
    plain = PlainTransformer(model)
    for row in range(BATCH):
        n_source = SOURCE if source_padding is None else int((~source_padding[row]).sum())
        n_target = TARGET if target_padding is None else int((~target_padding[row]).sum())
        want = plain.read(source[row].tolist(), target[row].tolist(), n_source, n_target)
        np.testing.assert_allclose(got[row], want, atol=1e-12 * max(1.0, float(np.abs(want).max())), rtol=0)


def test_a_shared_norm_is_one_module_and_is_saved_once(make_model):
    model = make_model(1, **variants.settings("shared-norm") | SMALL)
    norms = {name.removesuffix(".weight") for name in model.state_dict() if name.endswith("norm.weight")}
    layers = {f"{side}.{i}.norm" for side, n in (("encoder", 2), ("decoder", 3)) for i in range(n)}
    assert norms == layers | {"source_norm", "target_norm"}
