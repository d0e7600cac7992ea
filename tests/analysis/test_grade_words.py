"""The sentence above the tiles."""

import numpy as np

from transformer_viz.analysis import alignment
from transformer_viz.analysis.grade_words import grades_sentence
from transformer_viz.analysis.sentences import plain

MIRROR = (5, 4, 3, 2, 1, None)


def test_the_best_head_and_its_baselines(make_run, on) -> None:
    cross = np.stack([np.full((6, 7), 1 / 7, dtype=np.float32), (0.9 * on(MIRROR, 7) + 0.1 / 7).astype(np.float32)])[None]
    run, untrained = make_run(5, 6, MIRROR, cross=cross), make_run(5, 6, MIRROR)
    words = "Layer 1 head 2 of cross-attention is best: 91 % of its weight is on the right token"
    words += ", which is the largest at 100 % of the steps."
    even = "Uniform attention would have 14 % there"
    assert plain(grades_sentence(alignment(run))) == f"{words} {even}."
    both = plain(grades_sentence(alignment(run, untrained)))
    assert both == f"{words} {even}, an untrained model 14 %."


def test_without_a_right_key_it_says_how_heads_are_ranked(make_run) -> None:
    for run in (make_run(5, 6), make_run(5, 6, attentions={})):
        assert "No step of this run has a known right token" in plain(grades_sentence(alignment(run)))
