"""Tiny random Hugging Face models with a tokenizer of words, saved into a folder as their authors save theirs."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

WORDS = ("<pad>", "<s>", "</s>", "<unk>", "[MASK]", *(f"w{number}" for number in range(40)))
SIZES = {
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "bos_token_id": 1, "eos_token_id": 2},
    "bert": {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 64,
    },
    "marian": {
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 0,
        "forced_eos_token_id": None,
    },
}
CLASSES = {"gpt2": "AutoModelForCausalLM", "bert": "AutoModelForMaskedLM", "marian": "AutoModelForSeq2SeqLM"}


def made(family: str, kind: str | None = None) -> Any:
    """A model with random weights, the same at every call."""
    import transformers as hf

    torch.manual_seed(3)
    config = hf.AutoConfig.for_model(family, vocab_size=len(WORDS), **SIZES[family])
    model = getattr(hf, kind or CLASSES[family]).from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:  # sinusoids, which no file holds
                parameter.mul_(4)  # far apart, so that no rounding decides which token comes
    return model.eval()


def tokenizer(family: str = "gpt2") -> Any:
    """Of words; of an encoder-decoder each text ends with `</s>`."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if family == "marian":
        words.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "[MASK]"}
    return PreTrainedTokenizerFast(tokenizer_object=words, **special)


def save(folder: Path, family: str = "gpt2", kind: str | None = None, **how: Any) -> Path:
    """Config, weights and tokenizer; `how` goes to `save_pretrained`."""
    with without_bars():
        made(family, kind).save_pretrained(folder, **how)
    tokenizer(family).save_pretrained(folder)
    return folder


@contextmanager
def without_bars() -> Generator[None]:
    """Saving draws a progress bar, which standard error of a test should not have."""
    from transformers import logging

    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()
