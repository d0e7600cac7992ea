"""One norm module for all sublayers of a block, and a norm on scaled embeddings.

Source: the "Transformer Implementation" article. Differs from `post-norm` in the shared norm (used twice in an encoder block,
three times in a decoder block), and embeddings × √d_model with a norm after the positions, on both sides. Its weights are set
to 0 again after the softmax where they are masked; so are ours in every variant: a fully masked row is zeros in all of them.
"""

SETTINGS = {
    "norm": "post",
    "final_norm": False,
    "shared_norm": True,
    "embedding_norm": True,
    "embedding_scale": "both",
    "dropout": 0.1,
}
