"""What is not all seen is refused by its family's name and with the reason, never drawn empty or partly."""

from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")

from tests.readers import families  # noqa: E402
from tests.readers.every_family import made  # noqa: E402
from tests.readers.families import ALL, SHARED, family  # noqa: E402
from transformer_viz import decode  # noqa: E402
from transformer_viz.errors import InputError, ModelError  # noqa: E402
from transformer_viz.readers.huggingface.loading import wrap_model  # noqa: E402

REFUSED = {
    "gpt_oss": "the rows of its decoder attention 1 do not add up to 1, since a learned sink takes a part",
    "llama4_text": "it has layers of 'chunked_attention'",
    "gptj": "none of its attention passes through transformers' AttentionInterface",
    "longt5": "it returns 4 encoder attentions, but 0 were recorded",
    "mamba": "it has layers of 'linear_attention'",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_family_that_is_not_seen(name, caplog):
    """One for each reason (`test_every_family` has them all), and nothing is said but our sentence."""
    model = made(name)
    caplog.clear()
    with pytest.raises(ModelError) as caught:
        wrap_model(model, families.tokenizer(), name)
    said = str(caught.value)
    wanted = f"A model of the family {name!r} ({type(model).__name__}) cannot be shown here: {REFUSED[name]}"
    assert said.startswith(wanted), said
    assert not caplog.records


DAMAGES = {
    "fails": "a pass over three tokens fails .RuntimeError: an odd width",
    **dict.fromkeys(("order", "value"), "its decoder attention 1 differs from what was recorded of it"),
    "a step fails": "a step of decoding fails .AttributeError: 'tuple' object has no",
    "a step differs": "its logits are others token by token in a padded batch than in one pass",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_model_that_is_not_what_it_says_is_refused_when_loaded(damage):
    """A GPT-2 that cannot run, returns its attention turned around or a little less, or goes wrong behind a cache only."""
    model = families.untapped("gpt2")

    def wrong(module: Any, given: Any, options: dict[str, Any], output: Any) -> None:
        cache = options.get("past_key_values")
        is_step = cache is not None and cache.get_seq_length() > options["input_ids"].shape[1]
        match damage:
            case "fails":
                raise RuntimeError("an odd width")
            case "order" | "value" if output.attentions is not None:
                turned = output.attentions[::-1]
                output.attentions = turned if damage == "order" else tuple(each * 0.999 for each in output.attentions)
            case "a step fails" if is_step:
                raise AttributeError("'tuple' object has no attribute 'last_hidden_state'")
            case "a step differs" if is_step:
                output.logits[..., 3] += 0.5

    model.register_forward_hook(wrong, with_kwargs=True)
    with pytest.raises(ModelError, match=f"'gpt2' .* cannot be shown here: {DAMAGES[damage]}"):
        wrap_model(model, families.tokenizer(), "gpt2")


@pytest.mark.parametrize("name", sorted(set(ALL) - {"t5", "mt5", "umt5", "switch_transformers", "distilbert"}))
def test_the_longest_text_is_read_and_a_longer_one_refused(name):
    """RoBERTa's positions begin after the padding's."""
    reader = family(name)
    most = reader.network.sizes.longest_source - (name in families.DECODERS)
    assert most == 63 if name in families.DECODERS or name == "roberta" else most == 64
    n_words = most - (name not in families.DECODERS)
    assert len(decode(reader, "w1 " * n_words, max_length=1, kinds=reader.network.sizes.kinds[:1]).steps) < 65
    with pytest.raises(InputError, match=f"reads at most {most}"):
        decode(reader, "w1 " * (n_words + 1))


def test_a_model_whose_prompts_cannot_be_padded_is_refused_when_loaded():
    """Whisper's decoder counts padding as positions."""
    config = SHARED | {"d_model": 24, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 40}
    torch.manual_seed(0)
    model = transformers.WhisperForCausalLM(transformers.WhisperConfig(**config, is_encoder_decoder=False)).eval()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.25)
    with pytest.raises(ModelError, match="its logits are others token by token"):
        wrap_model(model, families.tokenizer(), "whisper")
