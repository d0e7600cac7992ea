"""What `torch.nn.Transformer` computes: norm(x + f(x)), and one more norm after each stack.

Source: the masks notebook, which builds its masks line by line around `nn.Transformer`. Differs from `post-norm` in the
final norms, sinusoid base 1000, and an initialization as torch's: uniform Xavier in the stacks (not in the embeddings), with
queries, keys and values as one matrix and attention biases of 0. Dropout is where `nn.Transformer` has it, and on the
embeddings, which `nn.Transformer` has none of. Published size: 6+6 layers, 2 heads, d_model 8 or 512 (here 512), d_ff 2048.

Corrected: the source's padding masks are invalid ⊗ invalid, a pair of two paddings, so that real queries still look at
padded keys; here every padded key is masked for every query (the mistake can be looked at on the page Masks). And torch
makes its layers as copies of one, so that the feed-forward biases of all layers of a stack begin equal; here each is drawn.
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
