"""The five published implementations in their articles' manner, own code, with the weights of our variants.

Each shares the parameters of a random model of ours, but computes attention, masks and layers as its article does. `make_NAME`
returns what `--module tests/published.py:make_NAME` needs, and `written_by_its_own_loop` decodes greedily without this package.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import transformer_viz as tv
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.vocabulary import END_ID, PAD_ID, START_ID

TASK = Reverse("helo abcd", 11, (1, 11))
SIZES = {"d_model": 12, "n_heads": 2, "d_ff": 7, "n_encoder_layers": 2, "n_decoder_layers": 2}


def ours(variant: str) -> Transformer:
    """A random model of a variant, in float64."""
    sizes = {"source_vocabulary_size": len(TASK.source_vocabulary), "target_vocabulary_size": len(TASK.target_vocabulary)}
    settings: dict[str, Any] = {**variants.settings(variant), **SIZES, **sizes}
    if variant == "bias-free":
        settings |= {"d_k": 5, "d_v": 5}
    if variant == "residual-post-norm":
        settings |= {"d_ff": 12}
    model = Transformer(ModelConfig(**settings)).double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(len(variant))
    for name, parameter in model.named_parameters():
        random = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data = random * (2.0 if "embedding" in name else 0.3) + name.endswith("norm.weight")
    return model


class Article(nn.Module):
    """What all share: our model's embeddings, layers and output; the article's own is in the classes below."""

    variant = ""

    def __init__(self) -> None:
        super().__init__()
        self.model: Any = ours(self.variant)
        self.n_heads = self.model.config.n_heads

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], -1, self.n_heads, x.shape[-1] // self.n_heads).transpose(1, 2)

    def feed_forward(self, layer: Any, x: Tensor) -> Tensor:
        return layer.feed_forward.outer(layer.feed_forward.inner(x).relu())


class BiasFree(Article):
    """Masks by the ids of both sides, norms made anew in each pass, logits in two axes, all maps returned."""

    variant = "bias-free"

    def attention(self, own: Any, q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor) -> tuple[Tensor, Tensor]:
        residual, batch_size = q, q.size(0)
        q_s, k_s, v_s = self.split(own.query(q)), self.split(own.key(k)), self.split(own.value(v))
        attn_mask = attn_mask.unsqueeze(1).repeat(1, self.n_heads, 1, 1)
        scores = torch.matmul(q_s, k_s.transpose(-1, -2)) / np.sqrt(k_s.shape[-1])
        scores.masked_fill_(attn_mask, -1e9)
        attn = nn.Softmax(dim=-1)(scores)
        context = torch.matmul(attn, v_s).transpose(1, 2).contiguous().view(batch_size, -1, self.n_heads * v_s.shape[-1])
        return nn.LayerNorm(residual.shape[-1], elementwise_affine=False)(own.out(context) + residual), attn

    def forward(self, enc_inputs: Tensor, dec_inputs: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor], list[Tensor]]:
        def pad_mask(seq_q: Tensor, seq_k: Tensor) -> Tensor:
            return seq_k.data.eq(PAD_ID).unsqueeze(1).expand(seq_q.size(0), seq_q.size(1), seq_k.size(1))

        norm = nn.LayerNorm(self.model.config.d_model, elementwise_affine=False)
        x, maps = self.model.embed_source(enc_inputs), ([], [], [])
        for layer in self.model.encoder:
            x, attn = self.attention(layer.attention, x, x, x, pad_mask(enc_inputs, enc_inputs))
            x = norm(self.feed_forward(layer, x) + x)
            maps[0].append(attn)
        n = dec_inputs.size(1)
        subsequent = torch.from_numpy(np.triu(np.ones([dec_inputs.size(0), n, n]), k=1)).byte()
        self_mask = torch.gt(pad_mask(dec_inputs, dec_inputs) + subsequent, 0)
        y = self.model.embed_target(dec_inputs, 0)
        for layer in self.model.decoder:
            y, attn = self.attention(layer.attention, y, y, y, self_mask)
            maps[1].append(attn)
            y, attn = self.attention(layer.cross_attention, y, x, x, pad_mask(dec_inputs, enc_inputs))
            maps[2].append(attn)
            y = norm(self.feed_forward(layer, y) + y)
        logits = self.model.logits(y)
        return logits.view(-1, logits.size(-1)), *maps


class PostNorm(Article):
    """Masks are handed in, 1 = may be seen; einsum all over."""

    variant = "post-norm"

    def attention(self, own: Any, q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
        b, h = q.shape[0], self.n_heads
        queries, keys, values = (f(z).reshape(b, z.shape[1], h, -1) for f, z in ((own.query, q), (own.key, k), (own.value, k)))
        energy = torch.einsum("nqhd,nkhd->nhqk", [queries, keys])
        energy = energy.masked_fill(mask == 0, float("-1e20"))
        attention = torch.softmax(energy / (queries.shape[-1] ** (1 / 2)), dim=3)
        return own.out(torch.einsum("nhql,nlhd->nqhd", [attention, values]).reshape(b, q.shape[1], -1))

    def forward(self, src: Tensor, trg: Tensor, src_mask: Tensor, trg_mask: Tensor) -> Tensor:
        x = self.model.embed_source(src)
        for layer in self.model.encoder:
            x = layer.around_attention.norm(x + self.attention(layer.attention, x, x, src_mask))
            x = layer.around_feed_forward.norm(x + self.feed_forward(layer, x))
        y = self.model.embed_target(trg, 0)
        for layer in self.model.decoder:
            y = layer.around_attention.norm(y + self.attention(layer.attention, y, y, trg_mask))
            y = layer.around_cross_attention.norm(y + self.attention(layer.cross_attention, y, x, src_mask))
            y = layer.around_feed_forward.norm(y + self.feed_forward(layer, y))
        return self.model.logits(y)

    def run(self, src: Tensor, trg: Tensor) -> Tensor:
        n = trg.shape[1]
        return self(
            src, trg, (src != PAD_ID).unsqueeze(1).unsqueeze(2), torch.tril(torch.ones((n, n))).expand(len(trg), 1, n, n)
        )


class TorchReference(Article):
    """`nn.Transformer`, its parameters set to ours; additive and boolean masks, made line by line."""

    variant = "torch-reference"

    def __init__(self) -> None:
        super().__init__()
        config = self.model.config
        sizes = (config.d_model, config.n_heads, config.n_encoder_layers, config.n_decoder_layers, config.d_ff)
        self.transformer = nn.Transformer(*sizes, dropout=0.1, batch_first=True).double()
        inner: Any = self.transformer
        # Its own loop would warn of a prototype of torch's.
        inner.encoder.use_nested_tensor = False
        for layers, mine in ((inner.encoder.layers, self.model.encoder), (inner.decoder.layers, self.model.decoder)):
            for theirs, own in zip(layers, mine, strict=True):
                self.copy(theirs.self_attn, own.attention)
                theirs.linear1.load_state_dict(own.feed_forward.inner.state_dict())
                theirs.linear2.load_state_dict(own.feed_forward.outer.state_dict())
                norms = [own.around_attention.norm, own.around_feed_forward.norm]
                if hasattr(own, "cross_attention"):
                    self.copy(theirs.multihead_attn, own.cross_attention)
                    norms.insert(1, own.around_cross_attention.norm)
                for number, norm in enumerate(norms, 1):
                    getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())
        inner.encoder.norm.load_state_dict(self.model.encoder_norm.state_dict())
        # The decoder's own final norm is within our output.
        inner.decoder.norm = None

    def copy(self, theirs: Any, own: Any) -> None:
        theirs.in_proj_weight.data = torch.cat([own.query.weight, own.key.weight, own.value.weight])
        theirs.in_proj_bias.data = torch.cat([own.query.bias, own.key.bias, own.value.bias])
        theirs.out_proj.load_state_dict(own.out.state_dict())

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        mask = torch.zeros(tgt.shape[1], tgt.shape[1], dtype=torch.float64)
        for row in range(tgt.shape[1]):
            mask[row, row + 1 :] = float("-inf")
        padding = src == PAD_ID
        options: Any = {"tgt_mask": mask, "src_key_padding_mask": padding, "memory_key_padding_mask": padding}
        out = self.transformer(self.model.embed_source(src), self.model.embed_target(tgt, 0), **options)
        return self.model.logits(out)


class SharedNorm(Article):
    """One norm a block; weights set to 0 again after the softmax; log-probabilities."""

    variant = "shared-norm"

    def attention(self, own: Any, q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
        query, key, value = self.split(own.query(q)), self.split(own.key(k)), self.split(own.value(k))
        scores = (query @ key.transpose(-2, -1)) * (1.0 / math.sqrt(key.shape[-1]))
        scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1) * (~mask)
        return own.out((weights @ value).transpose(1, 2).reshape(q.shape[0], q.shape[1], -1))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding, n = (source == PAD_ID)[:, None, None, :], target.shape[1]
        future = (torch.arange(n)[None] > torch.arange(n)[:, None])[None, None]
        x = self.model.embed_source(source)
        for layer in self.model.encoder:
            x = layer.norm(x + self.attention(layer.attention, x, x, padding))
            x = layer.norm(x + self.feed_forward(layer, x))
        y = self.model.embed_target(target, 0)
        for layer in self.model.decoder:
            y = layer.norm(y + self.attention(layer.attention, y, y, future))
            y = layer.norm(y + self.attention(layer.cross_attention, y, x, padding))
            y = layer.norm(y + self.feed_forward(layer, y))
        return nn.LogSoftmax(dim=-1)(self.model.logits(y))


class ResidualPostNorm(Article):
    """Additive masks with −∞; x + norm(sublayer(x)); the maps stay on the module."""

    variant = "residual-post-norm"

    def attention(self, own: Any, q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
        def transform(x: Tensor) -> Tensor:
            return self.split(x).reshape(x.shape[0] * self.n_heads, x.shape[1], -1)

        query, key, value = transform(own.query(q)), transform(own.key(k)), transform(own.value(k))
        scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(query.shape[-1])
        scores = scores + mask.repeat_interleave(self.n_heads, 0)
        self.attention_weights = torch.softmax(scores, -1)
        heads = torch.bmm(self.attention_weights, value).view(q.shape[0], self.n_heads, q.shape[1], -1)
        return own.out(heads.permute(0, 2, 1, 3).contiguous().flatten(2))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        n, zeros = target.shape[1], torch.zeros(*source.shape, dtype=torch.float64)
        padding = zeros.masked_fill(source == PAD_ID, float("-inf"))[:, None, :]
        future = torch.full((n, n), float("-inf"), dtype=torch.float64).triu(1).expand(len(target), n, n)
        x = self.model.embed_source(source)
        for layer in self.model.encoder:
            x = x + layer.around_attention.norm(self.attention(layer.attention, x, x, padding))
            x = x + layer.around_feed_forward.norm(self.feed_forward(layer, x))
        y = self.model.embed_target(target, 0)
        for layer in self.model.decoder:
            y = y + layer.around_attention.norm(self.attention(layer.attention, y, y, future))
            y = y + layer.around_cross_attention.norm(self.attention(layer.cross_attention, y, x, padding))
            y = y + layer.around_feed_forward.norm(self.feed_forward(layer, y))
        return self.model.logits(y)


ARTICLES: dict[str, type[Article]] = {
    article.variant: article for article in (BiasFree, PostNorm, TorchReference, SharedNorm, ResidualPostNorm)
}


def call_of(article: Article) -> Any:
    """The function that runs it, where that is not the module itself."""
    return article.run if isinstance(article, PostNorm) else None


def make(variant: str) -> Any:
    """An article as a loaded model."""
    article = ARTICLES[variant]()
    return tv.wrap(article, TASK, call=call_of(article), longest=16)


def make_bias_free() -> Any:
    return make("bias-free")


def make_post_norm() -> Any:
    return make("post-norm")


def make_torch_reference() -> Any:
    return make("torch-reference")


def make_shared_norm() -> Any:
    return make("shared-norm")


def make_residual_post_norm() -> Any:
    return make("residual-post-norm")


def written_by_its_own_loop(article: Article, text: str, most: int) -> list[str]:
    """What the article's own greedy loop writes: the whole target anew at each step."""
    run = call_of(article) or article
    source = torch.tensor([TASK.source_vocabulary.encode(TASK.frame(TASK.read(text)))])
    target = torch.tensor([[START_ID]])
    with torch.no_grad():
        for _ in range(most):
            out = run(source, target)
            out = out[0] if isinstance(out, tuple) else out
            word = out.reshape(-1, out.shape[-1])[-1].argmax()
            target = torch.cat([target, word[None, None]], 1)
            if word == END_ID:
                break
    return TASK.target_vocabulary.decode(target[0, 1:].tolist())
