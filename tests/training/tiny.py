"""A training of a second, which some tests change in one thing or another."""

from transformer_viz.training.recipe import Recipe

RECIPE = Recipe(
    task="reverse",
    variant="pre-norm",
    task_options={"alphabet": "abcd", "max_length": 7, "trained_lengths": [2, 5]},
    model={"d_model": 12, "n_heads": 3, "d_ff": 13, "n_encoder_layers": 1, "n_decoder_layers": 1},
    mix={"uniform": 1.0},
    steps=60,
    batch_size=7,
    learning_rate=0.01,
)
