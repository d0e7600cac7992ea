"""The layout of the 2017 paper: norm(x + f(x)), a separate norm for every sublayer.

Source: the "Encoder & Decoder" article (Vaswani et al. 2017, section 3.1). Biases everywhere, no final norm, no scaling of
the embeddings, sinusoid base 10000, sizes as they are given. Corrected: in the source the decoder's feed-forward layer adds
a stale residual, the input of the cross-attention; here, as in the paper, each sublayer adds its own input. Dropout acts
after every sublayer, as in the source, and also on embeddings, attention weights and in the feed-forward layer, which is
ours and may differ.
"""

SETTINGS = {"norm": "post", "final_norm": False, "dropout": 0.1}
