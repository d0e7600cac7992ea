"""Peak memory of tracing a Hugging Face model, against what is predicted before: `python -m benchmarks.reader_memory llama`.

Each model has random weights and the size of a real one, and runs in a process of its own; see `decoding_memory`.
"""

import json
import sys
from typing import Any

from benchmarks.decoding_memory import bytes_of, in_process, set_mark

LENGTHS = (32, 200)
"""Tokens that are written; a translator reads as many."""
NAMES = {"marian": "Marian, d_model 512, 6+6 layers", "llama": "SmolLM2-135M's size"}
_WORDS = 64


def measured(name: str) -> list[tuple[int, int]]:
    """For each length the bytes above the loaded model, and those that were predicted.

    Raises:
        Skipped: the system does not say, or transformers is not there.
    """
    return [tuple(pair) for pair in in_process("reader_memory", name) or ()]


def wrapped(name: str) -> Any:
    """The model as a reader; nothing ends before its last token."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from transformer_viz.readers.huggingface import loading

    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(_WORDS)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0", model_max_length=512)
    return loading.wrapped(_model(name).eval().requires_grad_(False), tokenizer, name)


def _model(name: str) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, MarianConfig, MarianMTModel

    torch.manual_seed(0)
    if name == "marian":
        wide: dict[str, Any] = {"d_model": 512, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "vocab_size": 58_101}
        layers: dict[str, Any] = {"encoder_layers": 6, "decoder_layers": 6}
        heads: dict[str, Any] = {"encoder_attention_heads": 8, "decoder_attention_heads": 8}
        ids: dict[str, Any] = {
            "pad_token_id": 0,
            "decoder_start_token_id": 0,
            "eos_token_id": None,
            "forced_eos_token_id": None,
        }
        return MarianMTModel(MarianConfig(max_position_embeddings=512, **wide, **layers, **heads, **ids))
    sizes: dict[str, Any] = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "vocab_size": 49_152}
    heads = {"num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, max_position_embeddings=8192, bos_token_id=1, eos_token_id=None))


def main(name: str) -> None:
    """Prints pairs of bytes as JSON, or null without transformers."""
    try:
        model = wrapped(name)
    except ImportError:
        print("null")
        return
    import transformer_viz as tv

    # A prompt is short, and what is written long, as when something is asked for.
    texts = [" ".join(f"w{i % _WORDS}" for i in range(n if name == "marian" else 8)) for n in LENGTHS]
    tv.decode(model, texts[0], max_length=4)
    before = bytes_of("VmRSS")
    found = []
    for text, n in zip(texts, LENGTHS, strict=True):
        predicted = tv.trace_size(model, text, max_length=n).peak
        set_mark()
        trace = tv.decode(model, text, max_length=n)
        assert trace.n_steps - trace.n_given == n
        found.append((bytes_of("VmHWM") - before, predicted))
        del trace
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
