"""Masks from a configuration: their patterns and reasons, the command, its files, and what is refused."""

from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.needs import needs
from transformer_viz.addresses import AttentionAddress
from transformer_viz.config_masks.patterns import cells_of, pattern_of, reasons_of
from transformer_viz.errors import ModelError, OptionError
from transformer_viz.export.masks_page import masks_bytes
from transformer_viz.terms import Reason

SMALL = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2, "num_hidden_layers": 3, "vocab_size": 50}
MISTRAL = SMALL | {"model_type": "mistral", "num_key_value_heads": 1, "sliding_window": 3}
GEMMA: dict[str, Any] = {
    "model_type": "gemma3",
    "image_token_id": 40,
    "text_config": SMALL
    | {"num_key_value_heads": 1, "head_dim": 8, "sliding_window": 5, "layer_types": ["full_attention"] * 3},
    "vision_config": SMALL | {"image_size": 28, "patch_size": 14},
}


def rule(n: int, see: Any) -> np.ndarray:
    return np.array([[see(query, key) for key in range(n)] for query in range(n)])


PATTERNS = {
    "all of the text": lambda q, k: True,
    "causal": lambda q, k: k <= q,
    "causal, a window of 3": lambda q, k: q - 3 < k <= q,
    "causal, chunks of 3": lambda q, k: k <= q and k // 3 == q // 3,
    "a window of 2 to each side": lambda q, k: abs(q - k) <= 2,
    "causal, after a prefix of 4 that is seen whole": lambda q, k: k <= q or max(q, k) < 4,
    "causal, blocks seen whole at 2 to 4 and 6 to 7": lambda q, k: k <= q or (q >= 1 and k <= 3) or (q >= 5 and k <= 6),
    "a pattern of its own": lambda q, k: (q + k) % 3 != 1,
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_named_by_its_cells_and_has_them(name):
    n = 11
    seen = rule(n, PATTERNS[name])
    padded = np.zeros((1, n), dtype=bool)
    assert pattern_of("decoder", ~seen[None], padded, padded) == name
    if name not in ("all of the text", "a pattern of its own"):
        np.testing.assert_array_equal(cells_of(name, n), seen)
    reasons = reasons_of("decoder", name, ~seen[None], padded)[0]
    for query in range(n):
        for key in range(n):
            near = Reason.WINDOW if "window" in name or "chunk" in name else Reason.UNKNOWN
            right = Reason.ALLOWED if seen[query, key] else Reason.FUTURE if key > query else near
            assert reasons[query, key] == right


@needs("transformers")
def test_each_layer_has_its_mask_by_brute_force_on_either_side():
    for side in ("left", "right"):
        masks = tv.masks(MISTRAL, lengths=[7, 4], padding=side)
        assert [group.title for group in masks.groups] == ["decoder, layers 1 to 3: causal, a window of 3"]
        real = np.array([[True] * 7, [False] * 3 + [True] * 4 if side == "left" else [True] * 4 + [False] * 3])
        window = rule(7, lambda q, k: q - 3 < k <= q)
        for layer in range(3):
            found = masks.of(AttentionAddress("decoder", layer))
            np.testing.assert_array_equal(found.masked, ~(window & real[:, None]))
            assert ((found.reasons & Reason.PADDING > 0) == (~real[:, None] & found.masked)).all()
    rows = [row for row in masks.rows() if row["layer"] == 1 and row["text"] == 0]
    assert [row["sees"] for row in rows] == [1, 2, 3, 3, 3, 3, 3]
    assert [row["outside_window"] for row in rows] == [0, 0, 0, 1, 2, 3, 4]


@needs("transformers")
def test_a_window_that_no_text_reaches_is_said_of_its_layers():
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    config = MISTRAL | {"model_type": "gemma3_text", "sliding_window": 512, "layer_types": kinds, "head_dim": 8}
    assert [group.title for group in tv.masks(config, lengths=6).groups] == [
        "decoder, layers 1 and 3: causal, a window of 512 is not reached",
        "decoder, layer 2: causal",
    ]


@needs("transformers")
def test_a_picture_is_seen_whole_where_the_processor_says_it_stands():
    masks = tv.masks(GEMMA, lengths=7, token_types=[0, 1, 1, 1, 0, 0, 0])
    assert masks.groups[0].pattern == "causal, blocks seen whole at 2 to 4"
    np.testing.assert_array_equal(~masks.of("decoder.1").masked[0], rule(7, lambda q, k: k <= q or (q >= 1 and k <= 3)))
    with pytest.raises(OptionError, match="7 are needed, each 0, 1 or 2"):
        tv.masks(GEMMA, lengths=7, token_types=[0, 1])
    with pytest.raises(OptionError, match="a MistralForCausalLM has none"):
        tv.masks(MISTRAL, lengths=3, token_types=[0, 1, 1])


@needs("transformers")
@pytest.mark.parametrize(
    ("config", "options", "error", "words"),
    [
        ("{", {}, OptionError, "not JSON"),
        (MISTRAL | {"num_hidden_layers": 300}, {}, ModelError, "to 300; at most 256 are possible"),
        (MISTRAL | {"a": {"b": {"num_experts": 5000}}}, {}, ModelError, "at most 1,024"),
        ("[]", {}, ModelError, "no config.json"),
        (7, {}, OptionError, "not int"),
        ({}, {}, ModelError, "has no model_type"),
        ({"model_type": "none-such"}, {}, ModelError, "'none-such', which this version"),
        (MISTRAL | {"num_hidden_layers": 9999}, {}, ModelError, "num_hidden_layers"),
        (MISTRAL | {"hidden_size": "much"}, {}, ModelError, "configuration alone|hidden_size"),
        ({"model_type": "fnet"}, {}, ModelError, "no attention with a mask"),
        (MISTRAL, {"lengths": 0}, OptionError, "lengths=0"),
        (MISTRAL, {"lengths": [1] * 9}, OptionError, "1 to 8 are possible"),
        (MISTRAL, {"lengths": 5, "pad_to": 4}, OptionError, "pad_to=4"),
        (MISTRAL, {"lengths": 5, "padding": "above"}, OptionError, "choose left or right"),
        (MISTRAL, {"texts": "a"}, OptionError, "texts need the folder"),
        (MISTRAL, {"texts": "a", "lengths": 2}, OptionError, "cannot be given together"),
        (MISTRAL, {"target_lengths": 2}, OptionError, "a MistralForCausalLM has none"),
    ],
)
def test_what_is_not_possible_is_said_in_one_line(config, options, error, words):
    with pytest.raises(error, match=words) as caught:
        tv.masks(config, **options)
    assert "\n" not in str(caught.value)


@needs("transformers")
def test_words_of_a_file_are_text_and_no_markup():
    masks = tv.masks(MISTRAL, lengths=3)
    page = masks_bytes(masks, "html").decode()
    assert "Content-Security-Policy" in page and "causal, a window of 3" not in page  # no text of 3 tokens reaches it
    with pytest.raises(OptionError, match="gif"):
        masks_bytes(masks, "gif")
