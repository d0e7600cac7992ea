"""Every switch of the model in plain numpy, from the weights of a state dict alone: what the package is compared with.

One sentence at a time. Every number of every attention is kept by kind and layer; nothing here is the package's.
"""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

Array = np.ndarray


class PlainTransformer:
    """Reads a source and a target, (position,) ids each.

    After `read`, `sites[kind, layer]` has entered, query, keys, values, scores, weights, output, projected, added,
    residual_before and residual_after, heads first where there are any; `states` are the decoder's, from the embeddings on.
    """

    def __init__(self, model: Any) -> None:
        self.weights = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}
        self.config = model.config
        self.masked_of: Callable[[str, int, int], Array] | None = None
        """The mask of a kind, a layer and a head, in the place of the model's own."""
        self.forced: Sequence[tuple[str, int, int, int, Array]] = ()
        """Kind, layer, head and query, and the row that stands there."""
        self.dead: Collection[tuple[str, int, int]] = ()
        """Heads that give nothing."""
        self.sites: dict[tuple[str, int], dict[str, Array]] = {}
        self.states: list[Array] = []

    def read(self, source: list[int], target: list[int], n_source: int | None = None, n_target: int | None = None) -> Array:
        """Logits (step, vocabulary); keys from `n_source` and `n_target` on are padding."""
        is_real = np.arange(len(source)) < (len(source) if n_source is None else n_source)
        query, key = np.indices((len(target), len(target)))
        is_seen = (key <= query) & (key < (len(target) if n_target is None else n_target))
        self.allowed = {"encoder": is_real, "decoder": is_seen, "cross": is_real}
        memory = self._embedded(source, "source", self.config.embedding_scale in ("encoder", "both"))
        for layer in range(self.config.n_encoder_layers):
            memory = self._sublayer(memory, None, "encoder", layer, f"encoder.{layer}", "attention")
            memory = self._feed_forward(memory, f"encoder.{layer}")
        memory = self._final(memory, "encoder_norm")
        x = self._embedded(target, "target", self.config.embedding_scale == "both")
        self.states = [x]
        for layer in range(self.config.n_decoder_layers):
            x = self._sublayer(x, None, "decoder", layer, f"decoder.{layer}", "attention")
            x = self._sublayer(x, memory, "cross", layer, f"decoder.{layer}", "cross_attention")
            x = self._feed_forward(x, f"decoder.{layer}")
            self.states.append(x)
        return self.written(x)

    def written(self, state: Array) -> Array:
        """Logits of a decoder's state."""
        return self._linear(self._final(state, "decoder_norm"), "output")

    def _embedded(self, ids: list[int], side: str, is_scaled: bool) -> Array:
        d_model = self.config.d_model
        x = self.weights[f"{side}_embedding.weight"][ids] * (math.sqrt(d_model) if is_scaled else 1)
        if self.config.position == "sinusoid":
            at = np.arange(len(ids))[:, None] / self.config.sinusoid_base ** (np.arange(0, d_model, 2) / d_model)
            x[:, 0::2] += np.sin(at)
            x[:, 1::2] += np.cos(at)
        elif self.config.position == "learned":
            x = x + self.weights["positions.table"][: len(ids)]
        return self._norm(x, f"{side}_norm") if self.config.embedding_norm else x

    def _sublayer(self, x: Array, memory: Array | None, kind: str, layer: int, block: str, name: str) -> Array:
        site: dict[str, Array] = {"residual_before": x}
        self.sites[kind, layer] = site

        def attention(y: Array) -> Array:
            return self._attention(y, y if memory is None else memory, site, f"{block}.{name}", kind, layer)

        site["residual_after"] = self._around(x, attention, block, f"around_{name}")
        return site["residual_after"]

    def _attention(self, y: Array, memory: Array, site: dict[str, Array], name: str, kind: str, layer: int) -> Array:
        query, keys, values = (
            self._linear(given, f"{name}.{part}").reshape(len(given), self.config.n_heads, -1).swapaxes(0, 1)
            for part, given in (("query", y), ("key", memory), ("value", memory))
        )
        scores = np.einsum("hqd,hkd->hqk", query, keys) / math.sqrt(query.shape[-1])
        heads = range(self.config.n_heads)
        allowed = self.allowed[kind] if self.masked_of is None else ~np.stack([self.masked_of(kind, layer, h) for h in heads])
        powers = np.where(allowed, np.exp(scores - scores.max(-1, keepdims=True)), 0)
        weights = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-300)
        for head, query_row, row in (where[2:] for where in self.forced if where[:2] == (kind, layer)):
            weights[head, query_row] = row
        output = np.einsum("hqk,hkd->hqd", weights, values)
        output[[head for head in heads if (kind, layer, head) in self.dead]] = 0
        out = self.weights[f"{name}.out.weight"]
        shares = out.reshape(len(out), self.config.n_heads, -1)
        added = self._linear(np.concatenate(list(output), -1), f"{name}.out")
        site |= {"entered": y, "query": query, "keys": keys, "values": values, "scores": scores, "weights": weights}
        site |= {"output": output, "projected": np.einsum("hqv,dhv->hqd", output, shares), "added": added}
        return added

    def _feed_forward(self, x: Array, block: str) -> Array:
        def feed_forward(y: Array) -> Array:
            inner = self._linear(y, f"{block}.feed_forward.inner")
            is_relu = self.config.activation == "relu"
            inner = np.maximum(inner, 0) if is_relu else inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
            return self._linear(inner, f"{block}.feed_forward.outer")

        return self._around(x, feed_forward, block, "around_feed_forward")

    def _around(self, x: Array, sublayer: Any, block: str, around: str) -> Array:
        norm = f"{block}.norm" if self.config.shared_norm else f"{block}.{around}.norm"
        if self.config.norm == "pre":
            return x + sublayer(self._norm(x, norm))
        if self.config.norm == "post":
            return self._norm(x + sublayer(x), norm)
        return x + self._norm(sublayer(x), norm)

    def _final(self, x: Array, name: str) -> Array:
        return self._norm(x, name) if self.config.final_norm else x

    def _norm(self, x: Array, name: str) -> Array:
        made = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return made * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"] if self.config.norm_affine else made

    def _linear(self, x: Array, name: str) -> Array:
        return x @ self.weights[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0)
