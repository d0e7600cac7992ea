"""One head of a Hugging Face model looked into, against plain numpy from its weights, and what each family can tell."""

import math
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv

pytest.importorskip("transformers")

from tests.readers import families

Array = np.ndarray
Site = dict[str, Array]


class Plain:
    """A model's weights in float64, and what both families share. `sites` has every attention's numbers, heads first."""

    def __init__(self, name: str) -> None:
        model = families.family(name).model.model
        self.config = model.config
        self.weights = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}
        self.sites: dict[tuple[str, int], Site] = {}

    def linear(self, x: Array, name: str) -> Array:
        return x @ self.weights[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0)

    def rms_norm(self, x: Array, name: str) -> Array:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * self.weights[f"{name}.weight"]

    def attention(self, site: Site, x: Array, memory: Array, names: list[str], **how: Any) -> Array:
        """Of all heads; `how` has heads, shared, scale, bias, is_causal, turn."""
        n_heads, n_shared = how["heads"], how.get("shared", 1)
        turn = how.get("turn", lambda vectors: vectors)
        query = turn(heads_of(self.linear(x, names[0]), n_heads))
        keys, values = (heads_of(self.linear(memory, name), n_heads // n_shared) for name in names[1:3])
        keys, values = np.repeat(turn(keys), n_shared, 0), np.repeat(values, n_shared, 0)
        scores = np.einsum("hqd,hkd->hqk", query, keys) * how["scale"]
        bias = how.get("bias")
        scores = scores if bias is None else scores + bias
        seen = np.where(np.triu(np.ones(scores.shape[1:]), 1) > 0, -np.inf, scores) if how.get("is_causal") else scores
        powers = np.exp(seen - seen.max(-1, keepdims=True))
        weights = powers / powers.sum(-1, keepdims=True)
        output = weights @ values
        out = self.weights[f"{names[3]}.weight"].reshape(-1, n_heads, output.shape[-1])
        site |= {"query": query, "keys": keys, "values": values, "scores": scores, "weights": weights, "output": output}
        site |= {"entered": x, "projected": np.einsum("hqv,dhv->hqd", output, out)} | ({} if bias is None else {"bias": bias})
        site["added"] = self.linear(np.concatenate(list(output), -1), names[3])
        return site["added"]

    def sublayer(self, kind: str, layer: int) -> Site:
        return self.sites.setdefault((kind, layer), {})


def heads_of(x: Array, n_heads: int) -> Array:
    return x.reshape(len(x), n_heads, -1).swapaxes(0, 1)


class PlainT5(Plain):
    """Pre-norm without means, a position bias and no division."""

    def run(self, source: list[int], target: list[int]) -> None:
        memory = self.rms_norm(self.stack("encoder", source, None), "encoder.final_layer_norm")
        self.stack("decoder", target, memory)

    def stack(self, side: str, ids: list[int], memory: Array | None) -> Array:
        x = self.weights["shared.weight"][ids]
        bias = self.bias(side, len(ids))
        for layer in range(self.config.num_layers if side == "encoder" else self.config.num_decoder_layers):
            at = f"{side}.block.{layer}.layer"
            x = self.around(side, layer, x, None, f"{at}.0", "SelfAttention", bias)
            if memory is not None:
                x = self.around("cross", layer, x, memory, f"{at}.1", "EncDecAttention", None)
            last = f"{at}.{1 if memory is None else 2}"
            inner = np.maximum(self.linear(self.rms_norm(x, f"{last}.layer_norm"), f"{last}.DenseReluDense.wi"), 0)
            x = x + self.linear(inner, f"{last}.DenseReluDense.wo")
        return x

    def around(self, kind: str, layer: int, x: Array, memory: Array | None, at: str, name: str, bias: Array | None) -> Array:
        site, entered = self.sublayer(kind, layer), self.rms_norm(x, f"{at}.layer_norm")
        names = [f"{at}.{name}.{part}" for part in "qkvo"]
        how = {"heads": self.config.num_heads, "scale": 1.0, "bias": bias, "is_causal": kind == "decoder"}
        added = self.attention(site, entered, entered if memory is None else memory, names, **how)
        site |= {"residual_before": x, "residual_after": x + added}
        return site["residual_after"]

    def bias(self, side: str, n: int) -> Array:
        """(head, query, key): learned for each bucket of distances; those are single up to half of a side's, then by logs."""
        table = self.weights[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        n_buckets, most = self.config.relative_attention_num_buckets, self.config.relative_attention_max_distance
        found = np.zeros((n, n), int)
        for query in range(n):
            for key in range(n):
                distance, bucket, of_side = key - query, 0, n_buckets
                if side == "encoder":
                    of_side //= 2
                    bucket = of_side if distance > 0 else 0
                    distance = abs(distance)
                else:
                    distance = max(-distance, 0)
                single = of_side // 2
                if distance >= single:
                    far = math.log(distance / single) / math.log(most / single) * (of_side - single)
                    distance = min(single + int(far), of_side - 1)
                found[query, key] = bucket + distance
        return table[found].transpose(2, 0, 1)


class PlainLlama(Plain):
    """Pre-norm without means, rotary positions, keys that two heads share."""

    def run(self, source: list[int], target: list[int]) -> None:
        x = self.weights["model.embed_tokens.weight"][target]
        n_heads, width = self.config.num_attention_heads, self.config.hidden_size // self.config.num_attention_heads
        n_shared = n_heads // self.config.num_key_value_heads
        for layer in range(self.config.num_hidden_layers):
            at = f"model.layers.{layer}"
            site, entered = self.sublayer("decoder", layer), self.rms_norm(x, f"{at}.input_layernorm")
            names = [f"{at}.self_attn.{part}_proj" for part in "qkvo"]
            how = {"heads": n_heads, "shared": n_shared, "scale": width**-0.5, "is_causal": True, "turn": self.turned}
            added = self.attention(site, entered, entered, names, **how)
            site |= {"residual_before": x, "residual_after": x + added}
            y = self.rms_norm(x + added, f"{at}.post_attention_layernorm")
            gate = self.linear(y, f"{at}.mlp.gate_proj")
            inner = gate / (1 + np.exp(-gate)) * self.linear(y, f"{at}.mlp.up_proj")
            x = x + added + self.linear(inner, f"{at}.mlp.down_proj")

    def turned(self, vectors: Array) -> Array:
        """Place i and place i + half of a vector are a point of the plane, turned by its position."""
        half = vectors.shape[-1] // 2
        angles = np.arange(vectors.shape[1])[:, None] * 10000.0 ** (-np.arange(half) / half)
        points = (vectors[..., :half] + 1j * vectors[..., half:]) * np.exp(1j * angles)
        return np.concatenate([points.real, points.imag], -1)


OF_ROWS = ("query", "scores", "bias", "weights", "output", "projected")


@pytest.mark.parametrize(("name", "plain"), [("t5", PlainT5), ("llama", PlainLlama)])
def test_every_number_is_that_of_plain_numpy(name: str, plain: type[Any]) -> None:
    model = families.family(name)
    trace = tv.decode(model, "w1 w2 w3 w4 w5")
    there = plain(name)
    there.run(list(trace.source_ids or ()), list(trace.target_ids or ()))
    for kind in trace.kinds:
        for layer, head, row in ((0, 1, 2), (1, 2, 0), (1, 0, len(trace.attentions[kind].queries) - 1)):
            inside, site = tv.inside(model, trace, kind, layer, head, row), there.sites[kind, layer]
            assert (inside.bias is not None) == ("bias" in site)
            assert inside.scale == pytest.approx(1 if name == "t5" else len(inside.query) ** -0.5)
            for what, array in site.items():
                want = array[head] if what in ("keys", "values") else array[head, row] if what in OF_ROWS else array[row]
                np.testing.assert_allclose(inside.require(what), want, atol=1e-4 if what == "scores" else 1e-5, rtol=1e-5)


PARALLEL_OR_TWICE = ("gpt_neox", "gemma2", "gemma3_text", "t5gemma")
"""One layer's attention and feed-forward are added at once; a norm before and another after."""


def normed(inside: tv.Inside, x: Array) -> Array:
    centred = x - (x.mean() if inside.norm_kind == "layer" else 0)
    made = centred / np.sqrt((centred**2).mean() + (inside.norm_epsilon or 0))
    weight, bias = inside.norm_weight, inside.norm_bias
    return made * (1 if weight is None else weight) + (0 if bias is None else bias)


@pytest.mark.parametrize("name", families.ALL)
def test_what_each_family_tells_fits_together(name: str) -> None:
    model = families.family(name)
    trace = tv.decode(model, "w1 [MASK] w3 w4")
    for kind in trace.kinds:
        row = len(trace.attentions[kind].queries) - 1
        heads = [tv.inside(model, trace, kind, 1, head, row) for head in range(trace.attentions[kind].weights.shape[1])]
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
            np.testing.assert_allclose(inside.entered, normed(inside, before) if is_pre else before, atol=1e-5)
            total = before + inside.added
            np.testing.assert_allclose(inside.require("residual_after"), total if is_pre else normed(inside, total), atol=1e-5)
        if kind == "encoder":
            assert inside.lens is None
        else:
            assert inside.lens is not None and len(inside.lens) == 1 + model.model.sizes.layers["decoder"][-1] + 1
            assert inside.lens[-1].probability == pytest.approx(trace.steps[row].probability, abs=1e-5)
