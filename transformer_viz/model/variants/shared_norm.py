"""One norm module for all sublayers of a block, and a norm on scaled embeddings.

Source: the "Transformer Implementation" article. Differs from `post-norm` in the shared norm (used twice in an encoder block,
three times in a decoder block), and embeddings × √d_model with a norm after the positions, on both sides. Its weights are set
to 0 again after the softmax where they are masked; so are ours in every variant: a fully masked row is zeros in all of them.
Published size: 6+6 layers, 8 heads, d_model 512; the width of the feed-forward layer is an argument, 2048 here as in the
2017 paper. Where the source's dropout acts could not be established: that it acts everywhere is ours and may differ.

Corrected: the source's pretrained embedding is loaded and thrown away, and the check of its shape is inverted. Its beams all
start with the score 0, so that beam search collapses to greedy, and get no source mask.
"""

SETTINGS = {
    "norm": "post",
    "final_norm": False,
    "shared_norm": True,
    "embedding_norm": True,
    "embedding_scale": "both",
    "d_model": 512,
    "d_ff": 2048,
    "n_heads": 8,
    "n_encoder_layers": 6,
    "n_decoder_layers": 6,
    "dropout": 0.1,
}
