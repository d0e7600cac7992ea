"""The certificate for models of Hugging Face: sound ones of every kind pass, planted leaks fail by the name of their rule."""

import pytest
import torch

import transformer_viz as tv
from tests.needs import needs
from tests.readers import families
from transformer_viz.errors import OptionError
from transformer_viz.readers.huggingface.loading import HuggingFaceModel

pytestmark = needs("transformers")
TEXTS = ["w9 w8 w7 w6 w5 w9 w8", "w9", "w5 w6 w7"]
DECODER = {"future", "target padding", "target length", "batch invariance", "finite"}
ENCODER = {"source padding", "batch invariance", "finite"}


def _own(name: str) -> HuggingFaceModel:
    """One whose code a test may change."""
    return families.wrap_model(families.untapped(name), families.tokenizer(), name)


def _failed(report) -> set[str]:
    return {finding.rule for finding in report.findings}


@pytest.mark.parametrize("name", families.ALL)
def test_a_sound_model_passes_every_rule_that_it_has_kinds_for(name):
    report = tv.check_masks(families.family(name), texts=TEXTS, replacements=1)
    assert report.sound, str(report)
    assert not report.notes
    assert set(report.checked) == (
        ENCODER if name in families.ENCODERS else DECODER if name in families.DECODERS else ENCODER | DECODER
    )
    # What is masked adds exactly nothing; only another shape rounds, and in float64 that is far below what is let pass.
    for rule, size in report.checked.items():
        if rule in ("target length", "batch invariance"):
            assert size < 1e-10
        else:
            # An expert that gets another number of tokens rounds in float32.
            assert size < 1e-6 if name == "switch_transformers" else size == 0
    assert report.precision
    assert report.precision.computed_in == "float32 and float64"


@pytest.mark.parametrize("seed", range(2))
def test_experts_that_get_other_numbers_of_tokens_round_and_leak_nothing(seed):
    """In float32 the products of each expert have another shape when padding is replaced; in float64 that is 10^-15."""
    report = tv.check_masks(families.family("switch_transformers"), texts=TEXTS, replacements=1, seed=seed)
    assert report.sound, str(report)


@pytest.mark.parametrize("size", [3e-6, 1e-3])
def test_a_leak_as_small_as_rounding_is_no_rounding(size):
    """Every step is told a little of the last token, in the logits alone."""
    loaded = _own("gpt2")

    def leaking(module, args, kwargs, output):
        ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
        output.logits = output.logits + size * ids[:, -1:, None] * torch.linspace(-1, 1, output.logits.shape[-1])
        return output

    loaded.model.model.register_forward_hook(leaking, with_kwargs=True)
    report = tv.check_masks(loaded, texts=TEXTS, replacements=1)
    assert report.verdict == "leaking"
    assert "future" in _failed(report)


@pytest.mark.parametrize("name", ["gemma2", "t5", "bert"])
def test_without_texts_random_tokens_do(name):
    report = tv.check_masks(families.family(name), replacements=1)
    assert report.sound, str(report)
    assert report.pairs == 8


@pytest.mark.parametrize("name", ["gpt2", "marian"])
def test_progress_counts_every_pass(name):
    shares = []
    report = tv.check_masks(families.family(name), texts=TEXTS, on_progress=shares.append)
    assert shares == [n / report.replacements for n in range(report.replacements)]


@pytest.mark.parametrize("name", ["gpt2", "gemma2", "marian", "t5"])
def test_without_the_causal_mask_it_fails_by_name(name):
    report = tv.check_masks(families.family(name), texts=TEXTS, edits=["decoder:off"], replacements=1)
    assert report.verdict == "leaking"
    assert "future" in _failed(report)
    assert report.causes == ("no-causal",)


def test_a_mask_that_is_off_in_one_layer_of_somebodys_code_is_found_there():
    loaded = _own("llama")

    def without(module, args, kwargs):
        return args, {**kwargs, "attention_mask": None}

    loaded.model.model.model.layers[1].self_attn.register_forward_pre_hook(without, with_kwargs=True)
    report = tv.check_masks(loaded, texts=TEXTS, replacements=1)
    assert {"future", "target padding", "batch invariance"} <= _failed(report)
    look = next(finding.look for finding in report.findings if finding.rule == "future")
    assert look is not None
    assert (look.kind, look.layer) == ("decoder", 1)


@pytest.mark.parametrize(
    ("name", "argument", "rules"),
    [
        ("bert", "attention_mask", {"source padding", "batch invariance"}),
        ("marian", "attention_mask", {"source padding", "batch invariance"}),
        # Behind a target the causal mask hides padding too; before a prompt nothing else does.
        ("llama", "attention_mask", {"target padding", "batch invariance"}),
        ("marian", "decoder_attention_mask", set()),
    ],
)
def test_a_model_that_does_not_look_at_its_padding_mask_fails_by_name(name, argument, rules):
    loaded = _own(name)

    def open_to_all(module, args, kwargs):
        given = kwargs.get(argument)
        return args, kwargs if given is None else {**kwargs, argument: torch.ones_like(given)}

    loaded.model.model.register_forward_pre_hook(open_to_all, with_kwargs=True)
    report = tv.check_masks(loaded, texts=TEXTS, replacements=1)
    assert _failed(report) == rules


def test_float64_is_set_for_nobody_else():
    """A page may check a model while another thread decodes: torch's default type holds for the whole process."""
    loaded, seen = _own("llama"), set()
    loaded.model.model.register_forward_pre_hook(lambda module, args: seen.add(torch.get_default_dtype()))
    tv.check_masks(loaded, texts=TEXTS, replacements=1)
    assert seen == {torch.float32}


def test_long_texts_are_cut_and_many_refused():
    loaded = families.family("gpt2")
    report = tv.check_masks(loaded, texts=["w9 " * 40], replacements=1)
    assert report.notes == ("Note: of longer texts the first 16 tokens were read.",)
    assert report.pairs == 1
    assert "(1 texts," in report.headline
    for texts in ([], ["w9"] * 9, "w9"):
        with pytest.raises(OptionError, match="1 to 8 texts"):
            tv.check_masks(loaded, texts=texts)


def test_a_checkpoint_takes_texts_too(tiny):
    report = tv.check_masks(tiny, texts=["hello", "bad"], replacements=1)
    assert report.sound
    assert report.pairs == 2
    assert _failed(tv.check_masks(tiny, texts=["hello", "bad"], replacements=1, edits=["cross:off"])) == {
        "source padding",
        "batch invariance",
    }
