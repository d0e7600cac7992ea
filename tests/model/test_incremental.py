"""Incremental decoding is the pass over the whole target, for every switch of the model and every intermediate."""

from typing import Any, get_args, get_type_hints

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_viz.model import masks, variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.trace.recorder import Recorder

TOKENS, LONGEST = 11, 11
NAMES = ("scores", "mask", "weights", "heads")
EXACT: dict[str, Any] = {"atol": 1e-11, "rtol": 1e-11, "equal_nan": True}
SWITCHES = {
    name: st.sampled_from([value for value in get_args(hint) if value is not None])
    for name, hint in get_type_hints(ModelConfig).items()
    if get_args(hint) and isinstance(get_args(hint)[0], str)
} | {name: st.booleans() for name, hint in get_type_hints(ModelConfig).items() if hint is bool}

WIDTHS = st.fixed_dictionaries({"d_k": st.sampled_from([None, 5]), "d_v": st.sampled_from([None, 4])})


def model_of(seed: int, **changes: Any) -> Transformer:
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {
        "d_model": 6,
        "n_heads": 3,
        "d_ff": 7,
        "n_encoder_layers": 1,
        "n_decoder_layers": 2,
        "max_positions": LONGEST,
    }
    config = ModelConfig(source_vocabulary_size=TOKENS, target_vocabulary_size=TOKENS, **{**sizes, **changes})
    model = Transformer(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Norms begin as ones and biases as zeros, which would hide one that is left out.
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def assert_same(model: Transformer, seed: int, n_target: int = 5) -> None:
    """Token by token, with and without a tap, padded and not."""
    numbers = torch.Generator().manual_seed(seed)
    source, target = (torch.randint(0, TOKENS, (2, n), generator=numbers) for n in (4, n_target))
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    memory = model.encode(source, padding)
    whole: Any = Recorder(NAMES)
    steps: Any = Recorder(NAMES)
    want = model.decode(target, memory, padding, tap=whole)
    for tap in (steps, None):
        decoder = model.start_decoding(memory, padding)
        got = torch.stack([decoder.read(target[:, t], tap=tap) for t in range(n_target)], 1)
        torch.testing.assert_close(got, want, **EXACT)
    future = masks.future(n_target, n_target)
    for kind in ("decoder", "cross"):
        for name in NAMES:
            expected, found = (recorder.gathered(kind, name, fill=name == "mask") for recorder in (whole, steps))
            if name == "mask":
                expected, found = (cells.expand(whole.gathered(kind, "weights").shape) for cells in (expected, found))
            if name == "scores" and kind == "decoder":
                # The score of a key that did not exist yet is known to one pass only.
                expected, found = (cells.masked_fill(future, 0) for cells in (expected, found))
            torch.testing.assert_close(found, expected, **EXACT)


@given(st.fixed_dictionaries(SWITCHES), WIDTHS, st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_every_combination_of_switches(switches, widths, seed):
    assert_same(model_of(seed, **switches, **widths), seed)


@pytest.mark.parametrize("name", variants.names())
def test_every_variant(name):
    assert_same(model_of(5, **{k: v for k, v in variants.settings(name).items() if k not in ("d_k", "d_v")}), 5, n_target=11)
