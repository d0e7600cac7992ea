"""What is not all seen is refused by its family's name and with the reason, never drawn empty or partly."""

from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")

from tests.readers import families  # noqa: E402
from tests.readers.families import ALL, LLAMA, SHARED, T5, family  # noqa: E402
from transformer_viz import decode  # noqa: E402
from transformer_viz.errors import InputError, ModelError  # noqa: E402
from transformer_viz.readers.huggingface.loading import wrap_model  # noqa: E402

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "gpt_oss": (
        "GptOssForCausalLM",
        LLAMA | {"head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1, "rope_parameters": {"rope_type": "default"}},
        "the rows of its decoder attention 1 do not add up to 1, since a learned sink takes a part",
    ),
    "llama4_text": (
        "Llama4ForCausalLM",
        LLAMA | {"head_dim": 8, "attention_chunk_size": 4, "intermediate_size_mlp": 40, "num_local_experts": 2},
        "it has layers of 'chunked_attention'",
    ),
    "gptj": (
        "GPTJForCausalLM",
        SHARED | {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 64, "rotary_dim": 4},
        "none of its attention passes through transformers' AttentionInterface",
    ),
    "longt5": (
        "LongT5ForConditionalGeneration",
        T5 | {"local_radius": 3},
        "it returns 3 encoder attentions, but 0 were recorded",
    ),
    "mamba": ("MambaForCausalLM", SHARED | {"hidden_size": 24, "num_hidden_layers": 2}, "it has layers of 'linear_attention'"),
    # A width of rotation that is odd: the model itself cannot run.
    "phi": ("PhiForCausalLM", LLAMA, "a pass over three tokens fails (RuntimeError: The size of tensor a"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_family_that_is_not_seen(name, caplog):
    """One for each reason (`test_every_family` has them all), and nothing is said but our sentence."""
    class_name, config, why = REFUSED[name]
    made = getattr(transformers, class_name)
    torch.manual_seed(0)
    model = made(made.config_class(**config)).eval()
    caplog.clear()
    with pytest.raises(ModelError) as caught:
        wrap_model(model, families.tokenizer(), name)
    said = str(caught.value)
    assert said.startswith(f"A model of the family {name!r} ({class_name}) cannot be shown here: {why}"), said
    assert not caplog.records


@pytest.mark.parametrize("damage", ["order", "value"])
def test_another_order_or_value_is_refused(damage):
    """Of the model's own attentions: here GPT-2 returns them turned around, or a little less."""
    model = families.untapped("gpt2")

    def wrong(module: Any, given: Any, output: Any) -> None:
        if output.attentions is not None:
            turned = output.attentions[::-1]
            output.attentions = turned if damage == "order" else tuple(each * 0.999 for each in output.attentions)

    model.register_forward_hook(wrong)
    with pytest.raises(ModelError, match="its decoder attention 1 differs from what was recorded of it"):
        wrap_model(model, families.tokenizer(), "gpt2")


@pytest.mark.parametrize("name", sorted(set(ALL) - {"t5", "mt5", "umt5", "switch_transformers", "distilbert"}))
def test_the_longest_text_is_read_and_a_longer_one_refused(name):
    """RoBERTa's positions begin after the padding's."""
    reader = family(name)
    most = reader.model.sizes.longest_source - (name in families.DECODERS)
    assert most == 63 if name in families.DECODERS or name == "roberta" else most == 64
    n_words = most - (name not in families.DECODERS)
    assert len(decode(reader, "w1 " * n_words, max_length=1, kinds=reader.model.sizes.kinds[:1]).steps) < 65
    with pytest.raises(InputError, match=f"reads at most {most}"):
        decode(reader, "w1 " * (n_words + 1))


@pytest.mark.parametrize("damage", ["fails", "differs"])
def test_a_model_that_cannot_decode_step_by_step_is_refused_when_loaded(damage):
    """Three tokens at once go well, and the step after a cache does not."""
    model = families.untapped("gpt2")

    def wrong(module: Any, given: Any, options: dict[str, Any], output: Any) -> None:
        cache = options.get("past_key_values")
        if cache is not None and cache.get_seq_length() > options["input_ids"].shape[1]:
            if damage == "fails":
                raise AttributeError("'tuple' object has no attribute 'last_hidden_state'")
            output.logits[..., 3] += 0.5

    model.register_forward_hook(wrong, with_kwargs=True)
    why = {
        "fails": "a step of decoding fails .AttributeError: 'tuple' object has no",
        "differs": "its logits are others token by token in a padded batch than in one pass",
    }
    with pytest.raises(ModelError, match=f"'gpt2' .* cannot be shown here: {why[damage]}"):
        wrap_model(model, families.tokenizer(), "gpt2")


def test_a_model_whose_prompts_cannot_be_padded_is_refused_when_loaded():
    """Whisper's decoder counts padding as positions."""
    config = SHARED | {"d_model": 24, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 40}
    torch.manual_seed(0)
    model = transformers.WhisperForCausalLM(transformers.WhisperConfig(**config, is_encoder_decoder=False)).eval()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.25)
    with pytest.raises(ModelError, match="its logits are others token by token"):
        wrap_model(model, families.tokenizer(), "whisper")
