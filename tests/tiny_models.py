"""Hugging Face models in folders, tiny and untrained, each with a tokenizer of its own: what an app finds on a machine."""

from pathlib import Path
from typing import Any

MARIAN, GPT2, BERT, MBART = "tiny-marian", "tiny-gpt2", "tiny-bert", "tiny-mbart"
DEEP = "tiny-deep"
NAMES = (MARIAN, GPT2, BERT, MBART)
_TEXTS = ("The capital of France is Paris.", "The house is small.", "das Haus ist klein")


def save(parent: Path) -> Path:
    """A translator, a decoder alone with a chat template, an encoder alone, and a translator between many languages, in folders
    of these names."""
    import torch
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        GPT2Config,
        GPT2LMHeadModel,
        MarianConfig,
        MarianMTModel,
        MBartConfig,
        MBartForConditionalGeneration,
    )

    torch.manual_seed(5)
    reads = {MARIAN: _unigram(), GPT2: _byte_level(), BERT: _word_piece(), MBART: _of_languages()}
    n = {name: len(tokenizer) for name, tokenizer in reads.items()}
    layers: dict[str, Any] = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "max_position_embeddings": 64}
    heads: dict[str, Any] = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    ids: dict[str, Any] = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    wide: dict[str, Any] = {"encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    marian = MarianConfig(vocab_size=n[MARIAN], **layers, **heads, **ids, **wide)
    gpt2 = GPT2Config(vocab_size=n[GPT2], n_embd=16, n_layer=2, n_head=2, n_positions=64, bos_token_id=0, eos_token_id=0)
    little: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    bert = BertConfig(vocab_size=n[BERT], max_position_embeddings=64, **little)
    ends: dict[str, Any] = {"pad_token_id": 1, "eos_token_id": 2, "bos_token_id": 0, "decoder_start_token_id": 2}
    mbart = MBartConfig(vocab_size=n[MBART], forced_eos_token_id=2, **layers, **heads, **ends, **wide)
    made = {MARIAN: MarianMTModel(marian), GPT2: GPT2LMHeadModel(gpt2), BERT: BertForMaskedLM(bert)}
    made[MBART] = MBartForConditionalGeneration(mbart)
    made[GPT2].generation_config.repetition_penalty = 1.2
    for name, model in made.items():
        for weights in model.parameters():
            weights.data *= 3  # so that they write more than one token again and again
        if name != BERT:
            model.generation_config.max_new_tokens = 8
        model.save_pretrained(parent / name)
        reads[name].save_pretrained(parent / name)
    return parent


def save_deep(parent: Path) -> Path:
    """A decoder alone of eight layers of three heads, so that its heads are more than one picture holds."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(7)
    reads = _byte_level()
    ids: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 0}
    made = GPT2LMHeadModel(GPT2Config(vocab_size=len(reads), n_embd=12, n_layer=8, n_head=3, n_positions=64, **ids))
    made.generation_config.max_new_tokens = 4
    for each in (made, reads):
        each.save_pretrained(parent / DEEP)
    return parent


CHAT = "{% for message in messages %}Q: {{ message['content'] }}\n{% endfor %}A:"
"""A chat template."""


def _byte_level():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special, alphabet = ["<|endoftext|>"], pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=special, show_progress=False)
    made.train_from_iterator(_TEXTS * 3, trainer)
    names = {"eos_token": special[0], "bos_token": special[0], "chat_template": CHAT}
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=64, **names)


def _word_piece():
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    # Written down: what the trainer of this model learns is not the same each time.
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({word for text in _TEXTS for word in text.lower().replace(".", " .").split()})
    letters = sorted(set("".join(words)) - {"."})
    unused = [f"[unused{place}]" for place in range(21)]
    pieces = [*special, *letters, *(f"##{letter}" for letter in letters), *words, *unused]
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=64, **names)


def _unigram():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = sorted({f"▁{word}" for text in _TEXTS for word in text.split()})
    letters = sorted(set("".join(_TEXTS)) - {" "})
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0)]
    vocabulary += [(word, -1.0) for word in words] + [(letter, -5.0) for letter in letters]
    made = Tokenizer(models.Unigram(vocabulary, unk_id=2))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=64, **names)


def _of_languages():
    from transformers import MBart50Tokenizer

    words = sorted({f"▁{word}" for text in _TEXTS for word in text.split()})
    letters = sorted({"▁", *"".join(_TEXTS)} - {" "})
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *words, *letters]
    return MBart50Tokenizer(vocab=[(piece, -1.0 if piece in words else -5.0) for piece in pieces], src_lang="en_XX")
