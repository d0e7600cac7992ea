"""No bias and no learned norm anywhere; d_k and d_v free of the model's width.

Source: the step-by-step "Transformer" article with the German-English toy (Vaswani et al. 2017, sizes of section 6.1).
Differs from `post-norm` in having no bias in attention, feed-forward and output projection, and in norms without
weight and bias: the source makes a new norm in every pass, which is therefore never trained. Dropout acts on the
embeddings, positions included, and nowhere else. Published size: 6+6 layers, 8 heads of 64, d_model 512, d_ff 2048.
"""

SETTINGS = {
    "norm": "post",
    "final_norm": False,
    "norm_affine": False,
    "attention_bias": False,
    "feed_forward_bias": False,
    "output_bias": False,
    "d_model": 512,
    "d_ff": 2048,
    "n_heads": 8,
    "d_k": 64,
    "d_v": 64,
    "n_encoder_layers": 6,
    "n_decoder_layers": 6,
    "dropout": 0.1,
    "dropout_in": "embeddings",
}
