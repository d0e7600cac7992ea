"""What `torch.nn.Transformer` computes: norm(x + f(x)), and one more norm after each stack.

Source: the masks notebook, which builds its masks line by line around `nn.Transformer`. Differs from `post-norm` in the
final norms, sinusoid base 1000, and Xavier initialization of the stacks (not of the embeddings). Published size: 6+6
layers, 2 heads, d_model 8 or 512 (here 512), d_ff 2048.
"""

SETTINGS = {
    "norm": "post",
    "final_norm": True,
    "sinusoid_base": 1000.0,
    "initialization": "xavier-stacks",
    "d_model": 512,
    "d_ff": 2048,
    "n_heads": 2,
    "n_encoder_layers": 6,
    "n_decoder_layers": 6,
    "dropout": 0.1,
}
