"""Hugging Face models as people hold them: in memory, compiled and saved, with pairs, with a template that was pasted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers  # noqa: E402

import transformer_viz as tv  # noqa: E402
from transformer_viz.errors import InputError, ModelError, OptionError  # noqa: E402


def word_level(**names: str) -> Any:
    words: dict[str, int] = {str(word): i for i, word in enumerate("<end> <begin> Q : A hello the house".split())}
    made = Tokenizer(models.WordLevel(words, unk_token="A"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(single="<begin> $A", special_tokens=[("<begin>", 1)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<begin>", eos_token="<end>", **names)


def gpt2(n: int = 8) -> Any:
    torch.manual_seed(0)
    ids = {"bos_token_id": 1, "eos_token_id": 0}
    config = transformers.GPT2Config(vocab_size=n, n_embd=16, n_layer=2, n_head=2, n_positions=64, **ids)
    return transformers.GPT2LMHeadModel(config)


def test_a_model_in_memory_with_its_tokenizer_is_a_loaded_model(tmp_path: Path) -> None:
    """The same as from a folder."""
    model, tokenizer = gpt2(), word_level()
    model.save_pretrained(tmp_path), tokenizer.save_pretrained(tmp_path)
    here = tv.decode(tv.wrap(model.train(), tokenizer), "the house", max_length=4)
    there = tv.decode(tv.load_model(str(tmp_path), "cpu"), "the house", max_length=4)
    assert {one.what for one in tv.diff(there, here, tolerance=1e-6).differences} <= {"model"}
    with pytest.raises(OptionError, match=r"its tokenizer|the tokenizer"):
        tv.wrap(model, ["a", "b"])
    with pytest.raises(OptionError, match="start is for modules of your own"):
        tv.wrap(model, tokenizer, start="<begin>")


@pytest.mark.parametrize(
    "call",
    [
        lambda model: tv.decode(model, "the"),
        tv.load_model,
        lambda model: tv.measure_effect(model, texts=["the"], edits=["decoder:off"]),
    ],
)
def test_a_model_that_is_not_wrapped_is_answered_with_the_line_that_helps(call) -> None:
    with pytest.raises(OptionError, match=r"GPT2LMHeadModel in memory; wrap it first: model = tv\.wrap\(model, tokenizer\)"):
        call(gpt2())


@pytest.mark.parametrize("before", ["_orig_mod.", "module.", "_orig_mod.module."])
def test_weights_that_were_saved_of_a_compiled_or_wrapped_model_are_read(tmp_path: Path, before: str) -> None:
    model, tokenizer = gpt2(), word_level()
    model.save_pretrained(tmp_path), tokenizer.save_pretrained(tmp_path)
    want = tv.decode(tv.load_model(str(tmp_path), "cpu"), "the house", max_length=3)
    file = tmp_path / "model.safetensors"
    save_file({before + name: value for name, value in load_file(file).items()}, file, metadata={"format": "pt"})
    found = tv.decode(tv.load_model(str(tmp_path), "cpu"), "the house", max_length=3)
    assert tv.diff(want, found, tolerance=1e-6).equal


def test_sizes_that_do_not_fit_are_said(tmp_path: Path) -> None:
    gpt2().save_pretrained(tmp_path), word_level().save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    save_file({k: v[:3].clone() if "wte" in k else v for k, v in load_file(file).items()}, file, metadata={"format": "pt"})
    with pytest.raises(
        ModelError, match=r"transformer\.wte\.weight has the shape \(3, 16\), and \(8, 16\) is needed"
    ) as caught:
        tv.load_model(str(tmp_path), "cpu")
    assert "above" not in str(caught.value)


def test_labels_of_a_byte_level_tokenizer_are_those_of_decoding() -> None:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|end|>"], show_progress=False)
    made.train_from_iterator(["the house is small"] * 3, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>")
    model = gpt2(len(tokenizer))
    for text in ("the house is small", "東京😀"):
        ids = tokenizer(text).input_ids
        seen = tv.trace_module(model, None, ids, vocabulary=tokenizer).target_tokens
        assert seen == tv.decode(tv.wrap(gpt2(len(tokenizer)), tokenizer), text, max_length=1).target_tokens
        assert not any("Ġ" in token for token in seen)


def bert() -> tuple[Any, Any]:
    words: dict[str, int] = {
        str(word): i for i, word in enumerate("[PAD] [UNK] [CLS] [SEP] [MASK] the house is small large".split())
    }
    made = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends, pair = [("[CLS]", 2), ("[SEP]", 3)], "[CLS] $A [SEP] $B:1 [SEP]:1"
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair=pair, special_tokens=ends)
    names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)
    torch.manual_seed(0)
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    model = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=len(words), **small)).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(10)
    return model, tokenizer


def test_two_texts_are_read_with_their_token_types() -> None:
    """Alone, and in a batch with a text of its own."""
    model, tokenizer = bert()
    given = tokenizer("the house", "is small", return_tensors="pt", return_token_type_ids=True)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        truth = torch.cat(model(**given, output_attentions=True).attentions).numpy()
        single = torch.cat(model(**tokenizer("the", return_tensors="pt"), output_attentions=True).attentions).numpy()
    wrapped = tv.wrap(model, tokenizer)
    pair, alone = tv.decode(wrapped, ["the house ||| is small", "the"])
    assert pair.source_tokens == ("[CLS]", "the", "house", "[SEP]", "is", "small", "[SEP]")
    np.testing.assert_allclose(pair.encoder.weights, truth, atol=1e-5)
    np.testing.assert_allclose(alone.encoder.weights, single, atol=1e-5)
    with pytest.raises(InputError, match="One of two texts is empty"):
        tv.decode(wrapped, "the house ||| ")


def test_a_start_token_that_stands_twice_is_remarked_on() -> None:
    model = tv.wrap(gpt2(), word_level(chat_template="{{ bos_token }} Q : {{ messages[0]['content'] }} A :"))
    pasted = tv.decode(model, "<begin> Q : hello A :", max_length=1)
    assert pasted.target_tokens[:2] == ("<begin>", "<begin>")
    assert "the start token <begin> stands twice" in pasted.made_by["remark"]
    assert "remark" not in tv.decode(model, "Q : hello A :", max_length=1).made_by
