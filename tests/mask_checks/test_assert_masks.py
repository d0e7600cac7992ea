"""`assert_masks` finds each planted fault and says where, and accuses no sound port."""

from typing import Any

import pytest
import torch

import transformer_viz as tv
from tests.mask_checks.ports import Decoder, Pair, V
from tests.needs import needs, slow
from tests.readers import families
from transformer_viz.errors import OptionError
from transformer_viz.mask_checks.assert_masks import MaskError

GPT: dict[str, Any] = {}
LLAMA: dict[str, Any] = {"rotary": True, "window": 3}
PREFIX: dict[str, Any] = {"prefix": 4}
FAULTS = [
    # family, its settings, fault, and of the first one: rule, kind, query, key from 0, seen or not
    (Decoder, GPT, "no causal", ("causal", "decoder", 0, 1, True)),
    (Decoder, GPT, "sees next", ("causal", "decoder", 0, 1, True)),
    (Decoder, GPT, "sees next but one", ("causal", "decoder", 0, 1, True)),
    (Decoder, GPT, "one layer without causal", ("causal", "decoder", 0, 1, True)),
    (Decoder, GPT, "padding not masked", ("left padding", "decoder", 4, 0, True)),
    (Decoder, GPT, "padding off by one", ("left padding", "decoder", 1, 0, True)),
    (Decoder, GPT, "padding of the first text", ("left padding", "decoder", 4, 0, True)),
    (Decoder, GPT, "positions count padding", ("positions", "decoder", 4, None, True)),
    (Decoder, GPT, "mean of the batch", ("batch invariance", "decoder", 0, None, True)),
    (Decoder, GPT, "cache one place off", ("cache", "decoder", 4, None, True)),
    (Decoder, GPT, "cache begins anew", ("cache", "decoder", 4, None, True)),
    (Decoder, GPT, "cache forgets the first", ("cache", "decoder", 4, None, True)),
    (Decoder, PREFIX, "prefix too short", ("prefix", "decoder", 0, 3, False)),
    (Decoder, PREFIX, "prefix too long", ("causal", "decoder", 0, 4, True)),
    (Decoder, PREFIX, "prefix not seen", ("prefix", "decoder", 0, 1, False)),
    (Decoder, LLAMA, "window too wide", ("window", "decoder", 5, 0, True)),
    (Decoder, LLAMA, "window too narrow", ("window", "decoder", 3, 0, False)),
    (Decoder, LLAMA, "window of one layer missing", ("window", "decoder", 5, 0, True)),
    (Decoder, LLAMA, "cache without window", ("cache", "decoder", 5, 0, True)),
    (Decoder, LLAMA, "cache one place off", ("cache", "decoder", 4, None, True)),
    (Pair, GPT, "decoder not causal", ("causal", "decoder", 0, 1, True)),
    (Pair, GPT, "decoder sees next", ("causal", "decoder", 0, 1, True)),
    (Pair, {"window": 2}, "window too wide", ("window", "decoder", 3, 0, True)),
    (Pair, GPT, "encoder padding not masked", ("padding", "cross", 0, 4, True)),
    (Pair, GPT, "cross padding not masked", ("padding", "cross", 0, 4, True)),
    (Pair, GPT, "cross mask dropped in a batch", ("padding", "cross", 0, 4, True)),
    (Pair, GPT, "cross mask of the first text", ("padding", "cross", 0, None, True)),
    (Pair, GPT, "cross without the last key", ("padding", "cross", 0, None, True)),
]
SOUND = [
    *(
        (Decoder, {"rotary": rotary, "n": n, **more})
        for rotary in (False, True)
        for n in (1, 2)
        for more in (GPT, {"window": 3}, PREFIX)
    ),
    *((Decoder, {"rotary": True, "n": 3, "window": window}) for window in (2, 4)),
    *((Pair, {"n": n, **more}) for n in (1, 2, 3) for more in (GPT, {"window": 2})),
]


def told(kind: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """What `assert_masks` is told of a port."""
    return {name: settings[name] for name in ("window", "prefix") if name in settings} | {"layers": settings.get("n", 2)}


@pytest.mark.parametrize(("kind", "settings", "fault", "first"), FAULTS, ids=[f"{one[0].__name__} {one[2]}" for one in FAULTS])
def test_a_planted_fault_is_found_and_its_first_cell_named(kind, settings, fault, first):
    port = kind(fault, **settings)
    with pytest.raises(MaskError) as caught:
        tv.assert_masks(port, **told(kind, settings))
    found = [(one.rule, one.kind, one.query, one.key, one.is_seen) for one in caught.value.faults]
    assert first in found, str(caught.value)


@pytest.mark.parametrize(("kind", "settings"), SOUND, ids=str)
def test_no_sound_port_is_accused(kind, settings):
    checked = tv.assert_masks(kind(**settings), **told(kind, settings)).checked
    assert {"batch invariance", "padding", "causal"} <= {*checked}
    assert ("cache" in checked, "left padding" in checked) == (kind is Decoder,) * 2
    assert ("window" in checked) == ("window" in settings)


HUGGING_FACE = {**families.DECODERS, **families.ENCODERS, **families.ENCODER_DECODERS}
QUICK = ("gpt2", "gemma3_text", "bert", "modernbert", "t5")


def hugging_face(name: str, **settings: Any) -> Any:
    import transformers as hf

    model_class, config = HUGGING_FACE[name]
    torch.manual_seed(3)
    kind = getattr(hf, model_class)
    return kind._from_config(kind.config_class(**config, **settings), attn_implementation="eager").eval()


@needs("transformers")
@pytest.mark.parametrize("name", [name if name in QUICK else slow(name) for name in HUGGING_FACE])
def test_no_model_of_hugging_face_is_accused(name):
    checked = tv.assert_masks(hugging_face(name))
    assert {"layers", "batch invariance", "padding"} <= {*checked.checked}


@needs("transformers")
def test_a_window_that_is_another_than_the_configurations_is_named_with_its_layer():
    """A port that reads the right weights and another setting: each second layer has the window."""
    port = hugging_face("gemma3_text")
    right = type(port.config)(**HUGGING_FACE["gemma3_text"][1])
    assert tv.assert_masks(port, like=right).checked[0] == "layers"
    port.config.sliding_window = 5
    with pytest.raises(
        MaskError,
        match="layers: decoder layer 1, query 5, key 1 is seen and must not be; it should see keys 2 to 5, and sees keys 1",
    ):
        tv.assert_masks(port, like=right)
    port.config.sliding_window = 3
    with pytest.raises(MaskError, match="decoder layer 1, query 4, key 1 is not seen and should be"):
        tv.assert_masks(port, like=right)


def test_a_function_is_tested_too_and_said_what_is_needed():
    port = Decoder()
    with pytest.raises(OptionError, match="vocabulary_size is needed"):
        tv.assert_masks(lambda ids: port(ids).logits)
    checked = tv.assert_masks(lambda ids: port(ids).logits, vocabulary_size=V, pad_id=None)
    assert {*checked.checked} == {"causal", "batch invariance"} and checked.left_out == ("padding: pad_id is None",)
    with pytest.raises(
        MaskError, match="causal: decoder, query 1, key 2 is seen and must not be; it should see key 1, and sees keys 1 to 8"
    ):
        tv.assert_masks(lambda ids: Decoder("no causal")(ids).logits, vocabulary_size=V, pad_id=None)
    with pytest.raises(OptionError, match="two answers"):
        tv.assert_masks(lambda ids: torch.rand(*ids.shape, V), vocabulary_size=V)
    with pytest.raises(OptionError, match="returned a tensor"):
        tv.assert_masks(lambda ids: ids, vocabulary_size=V)
    not_callable: Any = 7
    with pytest.raises(OptionError, match="not int; what wrap or load_model returns is for check_masks"):
        tv.assert_masks(not_callable, vocabulary_size=V)
