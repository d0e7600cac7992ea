"""Incremental decoding is the pass over the whole target, for every switch of the model and every intermediate."""

import itertools
from typing import Any, get_args, get_type_hints

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_viz.model import masks
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.tap import RecordTap, TapName, compose
from transformer_viz.model.transformer import Transformer
from transformer_viz.trace.recorder import Recorder

TOKENS, LONGEST = 11, 11
NAMES: tuple[TapName, ...] = (
    *("residual_before", "entered", "query", "scores", "mask", "weights", "heads", "added", "residual_after", "state"),
)
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


def assert_same(model: Transformer, seed: int, n_target: int) -> None:
    """Token by token, with and without a tap, padded and not."""
    numbers = torch.Generator().manual_seed(seed)
    source, target = (torch.randint(0, TOKENS, (2, n), generator=numbers) for n in (4, n_target))
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    memory = model.encode(source, padding)
    whole, whole_keys, steps, last_keys = Recorder(NAMES), RecordTap("key", "value"), Recorder(NAMES), RecordTap("key", "value")
    want = model.decode(target, memory, padding, tap=compose(whole, whole_keys))
    for tap in (compose(steps, last_keys), None):
        decoder = model.start_decoding(memory, padding)
        got = torch.cat([decoder.read(target[:, t : t + 1], tap=tap) for t in range(n_target)], 1)
        torch.testing.assert_close(got, want, **EXACT)
    torch.testing.assert_close(last_keys.kept, whole_keys.kept, **EXACT)
    future = masks.future(n_target, n_target)
    for kind, name in itertools.product(("decoder", "cross"), NAMES):
        expected, found = (recorder.gathered(kind, name) for recorder in (whole, steps))
        if expected is None or found is None:
            assert (kind, name) == ("cross", "state")
            continue
        if name == "mask":
            expected, found = (cells.expand(2, 2, 3, n_target, expected.shape[-1]) for cells in (expected, found))
        if name == "scores" and kind == "decoder":
            # The score of a key that did not exist yet is known to one pass only.
            expected, found = (cells.masked_fill(future, 0) for cells in (expected, found))
        torch.testing.assert_close(found, expected, **EXACT)


@given(st.fixed_dictionaries(SWITCHES), WIDTHS, st.integers(0, 99), st.sampled_from([5, LONGEST]))
@settings(max_examples=15, deadline=None)
def test_every_combination_of_switches(switches, widths, seed, n_target):
    assert_same(model_of(seed, **switches, **widths), seed, n_target)
