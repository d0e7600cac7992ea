"""One head of a Hugging Face model looked into, against plain numpy from its weights, and what each family can tell."""

import numpy as np
import pytest
import torch

import transformer_viz as tv
from transformer_viz.addresses import HeadAddress

pytest.importorskip("transformers")

from tests.readers import families
from transformer_viz.terms import Kind

Array = np.ndarray


class PlainLlama:
    """Weights in float64: pre-norm without means, rotary positions, keys that two heads share.

    `sites` has every attention's numbers by layer, heads first.
    """

    def __init__(self) -> None:
        model = families.family("llama").network.model
        self.config = model.config
        self.weights = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}
        self.sites: list[dict[str, Array]] = []

    def linear(self, x: Array, name: str) -> Array:
        return x @ self.weights[f"{name}.weight"].T

    def norm(self, x: Array, name: str) -> Array:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * self.weights[f"{name}.weight"]

    def run(self, target: list[int]) -> None:
        x = self.weights["model.embed_tokens.weight"][target]
        for layer in range(self.config.num_hidden_layers):
            at = f"model.layers.{layer}"
            before, entered = x, self.norm(x, f"{at}.input_layernorm")
            site = self.attention(entered, f"{at}.self_attn")
            x = x + site["added"]
            self.sites.append(site | {"entered": entered, "residual_before": before, "residual_after": x})
            y = self.norm(x, f"{at}.post_attention_layernorm")
            gate = self.linear(y, f"{at}.mlp.gate_proj")
            x = x + self.linear(gate / (1 + np.exp(-gate)) * self.linear(y, f"{at}.mlp.up_proj"), f"{at}.mlp.down_proj")

    def attention(self, x: Array, at: str) -> dict[str, Array]:
        n_heads, n_shared = self.config.num_attention_heads, self.config.num_key_value_heads
        query, keys, values = (
            self.linear(x, f"{at}.{part}_proj").reshape(len(x), n, -1).swapaxes(0, 1)
            for part, n in (("q", n_heads), ("k", n_shared), ("v", n_shared))
        )
        query, keys, values = (
            self.turned(query),
            *(np.repeat(each, n_heads // n_shared, 0) for each in (self.turned(keys), values)),
        )
        scores = np.einsum("hqd,hkd->hqk", query, keys) / np.sqrt(query.shape[-1])
        powers = np.exp(scores - scores.max(-1, keepdims=True)) * np.tri(len(x))
        weights = powers / powers.sum(-1, keepdims=True)
        output = weights @ values
        out = self.weights[f"{at}.o_proj.weight"].reshape(-1, n_heads, output.shape[-1])
        projected = np.einsum("hqv,dhv->hqd", output, out)
        of_heads = {"query": query, "keys": keys, "values": values, "scores": scores, "weights": weights, "output": output}
        return of_heads | {"projected": projected, "added": projected.sum(0)}

    def turned(self, vectors: Array) -> Array:
        """Place i and place i + half of a vector are a point of the plane, turned by its position."""
        half = vectors.shape[-1] // 2
        angles = np.arange(vectors.shape[1])[:, None] * 10000.0 ** (-np.arange(half) / half)
        points = (vectors[..., :half] + 1j * vectors[..., half:]) * np.exp(1j * angles)
        return np.concatenate([points.real, points.imag], -1)


def test_every_number_is_that_of_plain_numpy() -> None:
    model, plain = families.family("llama"), PlainLlama()
    trace = tv.decode(model, "w1 w2 w3 w4 w5")
    plain.run(list(trace.target_ids or ()))
    for layer, head, row in ((0, 1, 2), (1, 2, 0), (1, 0, trace.n_steps - 1)):
        inside = tv.inspect_head(model, trace, HeadAddress("decoder", layer, head), row)
        assert inside.scale == pytest.approx(len(inside.query) ** -0.5) and inside.bias is None
        for what, array in plain.sites[layer].items():
            want = array[row] if array.ndim == 2 else array[head] if what in ("keys", "values") else array[head, row]
            np.testing.assert_allclose(inside.require(what), want, atol=1e-4 if what == "scores" else 1e-5, rtol=1e-5)


PARALLEL_OR_TWICE = ("gpt_neox", "gemma2", "gemma3_text", "t5gemma")
"""One layer's attention and feed-forward are added at once; a norm before and another after."""


def normed(inside: tv.Inside, x: Array) -> Array:
    centred = x - (x.mean() if inside.norm_kind == "layer" else 0)
    made = centred / np.sqrt((centred**2).mean() + (inside.norm_epsilon or 0))
    weight, bias = inside.norm_weight, inside.norm_bias
    return made * (1 if weight is None else weight) + (0 if bias is None else bias)


@torch.no_grad()
def states(name: str, trace: tv.Trace, kind: Kind) -> Array:
    """What enters each layer of the model itself, (layer, position, d_model)."""
    model = families.own(name)
    read = {"input_ids": torch.tensor([trace.source_ids or trace.target_ids])}
    both = model.config.is_encoder_decoder
    read |= {"decoder_input_ids": torch.tensor([trace.target_ids])} if both else {}
    found = model(**read, output_hidden_states=True)
    return torch.cat(found[f"{kind}_hidden_states" if both else "hidden_states"][:2]).numpy()


@pytest.mark.parametrize("name", families.cases(families.ALL))
def test_what_each_family_tells_fits_together(name: str) -> None:
    """From the state that the model itself hands to its second layer to the probability of what was written."""
    model = families.family(name)
    trace = tv.decode(model, "w1 [MASK] w3 w4")
    for kind in trace.kinds:
        row = len(trace.attentions[kind].queries) - 1
        heads = [
            tv.inspect_head(model, trace, HeadAddress(kind, 1, head), row)
            for head in range(trace.attentions[kind].weights.shape[1])
        ]
        inside = heads[2]
        np.testing.assert_allclose(inside.weights, trace.attentions[kind].weights[1, 2, row], atol=1e-5)
        np.testing.assert_allclose(inside.weights @ inside.values, inside.output, atol=1e-5)
        np.testing.assert_allclose(inside.require("projected"), inside.output @ inside.require("out"), atol=1e-5)
        assert inside.entered is not None and inside.added is not None
        bias = 0 if inside.out_bias is None else inside.out_bias
        np.testing.assert_allclose(sum(head.require("projected") for head in heads) + bias, inside.added, atol=1e-5)
        scores = inside.require("keys") @ inside.query * inside.scale
        scores = scores if inside.softcap is None else inside.softcap * np.tanh(scores / inside.softcap)
        np.testing.assert_allclose(scores + (0 if inside.bias is None else inside.bias), inside.require("scores"), atol=1e-4)
        if name in PARALLEL_OR_TWICE:
            assert inside.norm is inside.residual_before is inside.residual_after is None
            with pytest.raises(tv.TransformerVizError, match=f"residual_before is something that {name} does not have"):
                inside.require("residual_before")
        else:
            before, is_pre = inside.require("residual_before"), inside.norm == "pre"
            if kind == "cross":
                given = tv.inspect_head(model, trace, "decoder.2.1", row).require("residual_after")
            else:
                given = states(name, trace, kind)[1, row]
            np.testing.assert_allclose(before, given, atol=1e-5)
            np.testing.assert_allclose(inside.entered, normed(inside, before) if is_pre else before, atol=1e-5)
            total = before + inside.added
            np.testing.assert_allclose(inside.require("residual_after"), total if is_pre else normed(inside, total), atol=1e-5)
        if kind == "encoder":
            assert inside.lens is None
        else:
            assert inside.lens is not None and len(inside.lens) == 1 + model.network.sizes.layers["decoder"][-1] + 1
            assert inside.lens[-1].probability == pytest.approx(trace.steps[row].probability, abs=1e-5)
