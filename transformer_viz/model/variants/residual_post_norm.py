"""Word reversal with x + norm(f(x)).

Source: B. Etienne 2024, "A Complete Guide to Write Your Own Transformers". Differs from `post-norm` in
the place of the norm, no bias in the attention projections, only the encoder's embedding scaled by
√d_model, a feed-forward layer as wide as the model, and Xavier initialization of every matrix,
embeddings too. Published size: 1+1 layers, 4 heads, d_model 128. Dropout acts, as in the source, on what the encoder's
self-attention adds and nowhere else: its other dropout layers are made and never called.
"""

SETTINGS = {
    "norm": "residual-post",
    "final_norm": False,
    "attention_bias": False,
    "embedding_scale": "encoder",
    "initialization": "xavier",
    "d_model": 128,
    "d_ff": 128,
    "n_heads": 4,
    "n_encoder_layers": 1,
    "n_decoder_layers": 1,
    "dropout": 0.1,
    "dropout_in": "encoder-attention",
}
