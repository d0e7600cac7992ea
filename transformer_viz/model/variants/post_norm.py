"""The layout of the 2017 paper: norm(x + f(x)), a separate norm for every sublayer.

Source: the "Encoder & Decoder" article (Vaswani et al. 2017, section 3.1). Biases everywhere,
no final norm, no scaling of the embeddings, sinusoid base 10000, dropout after every sublayer.
"""

SETTINGS = {"norm": "post", "final_norm": False, "dropout": 0.1}
