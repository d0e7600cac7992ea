"""A Marian model of Hugging Face with random weights, and our own model with the very same weights.

Both compute the same function, so both write the same tokens: what is compared is the program, not the model.
"""

from typing import Any

import torch

from benchmarks.measure import Skipped
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.vocabulary import END_ID, PAD_ID, START_ID

# Far below every other logit: the model never ends by itself, so all write the same number of tokens.
_NEVER = -1e4


def ours(size: dict[str, int], vocabulary: int) -> Transformer:
    """Our model in Marian's layout, with random weights, that never ends by itself."""
    config = ModelConfig(
        source_vocabulary_size=vocabulary,
        target_vocabulary_size=vocabulary,
        d_model=size["d_model"],
        n_heads=size["heads"],
        d_ff=size["d_ff"],
        n_encoder_layers=size["layers"],
        n_decoder_layers=size["layers"],
        norm="post",
        final_norm=False,
        tied_embeddings="all",
    )
    torch.manual_seed(0)
    model = Transformer(config).eval().requires_grad_(False)
    # A tied model with random weights writes one token for ever, which would hide a difference. Random positions stir it.
    assert model.positions.table is not None
    model.positions.table.normal_()
    model.target_embedding.weight.mul_(0.1)
    assert model.output.bias is not None
    model.output.bias[[PAD_ID, START_ID, END_ID]] = _NEVER
    return model


def theirs(model: Transformer) -> Any:
    """Hugging Face's `MarianMTModel` with the weights of our model, eager attention.

    Raises:
        Skipped: transformers is not installed.
    """
    try:
        from transformers import MarianConfig, MarianMTModel
    except ImportError:
        raise Skipped("no package transformers (benchmarks/requirements.txt)") from None
    c = model.config
    marian = MarianMTModel(
        MarianConfig(
            vocab_size=c.target_vocabulary_size,
            d_model=c.d_model,
            encoder_layers=c.n_encoder_layers,
            decoder_layers=c.n_decoder_layers,
            encoder_attention_heads=c.n_heads,
            decoder_attention_heads=c.n_heads,
            encoder_ffn_dim=c.d_ff,
            decoder_ffn_dim=c.d_ff,
            max_position_embeddings=c.max_positions,
            activation_function="relu",
            scale_embedding=False,
            pad_token_id=PAD_ID,
            bos_token_id=START_ID,
            eos_token_id=END_ID,
            decoder_start_token_id=START_ID,
            forced_eos_token_id=None,
        )
    )
    # The default kernel records no attention.
    marian.set_attn_implementation("eager")
    marian = marian.eval().requires_grad_(False)
    _copy(model, marian)
    return marian.to(next(model.parameters()).device)


def generated(model: Any, source: torch.Tensor, n: int) -> Any:
    """What Hugging Face's own greedy `generate` writes in `n` tokens, with all attentions."""
    asked = {"attention_mask": torch.ones_like(source), "max_new_tokens": n, "do_sample": False, "num_beams": 1}
    return model.generate(source, **asked, output_attentions=True, return_dict_in_generate=True)


def _copy(model: Transformer, marian: Any) -> None:
    marian.model.shared.weight.copy_(model.target_embedding.weight)
    marian.final_logits_bias.copy_(model.output.bias)
    for stack in (marian.model.encoder, marian.model.decoder):
        stack.embed_positions.weight.copy_(model.positions.table)
    here: Any
    layers = zip([*marian.model.encoder.layers, *marian.model.decoder.layers], [*model.encoder, *model.decoder], strict=True)
    for there, here in layers:
        _copy_attention(there.self_attn, there.self_attn_layer_norm, here.attention, here.around_attention)
        if hasattr(there, "encoder_attn"):
            cross = here.cross_attention, here.around_cross_attention
            _copy_attention(there.encoder_attn, there.encoder_attn_layer_norm, *cross)
        _load(there.fc1, here.feed_forward.inner)
        _load(there.fc2, here.feed_forward.outer)
        _load(there.final_layer_norm, here.around_feed_forward.norm)


def _copy_attention(there: Any, norm: Any, here: Any, around: Any) -> None:
    for name, part in (("q_proj", here.query), ("k_proj", here.key), ("v_proj", here.value), ("out_proj", here.out)):
        _load(getattr(there, name), part)
    _load(norm, around.norm)


def _load(there: Any, here: Any) -> None:
    there.load_state_dict(here.state_dict())
