"""The certificate for models of Hugging Face: sound ones of every kind pass, planted leaks fail by the name of their rule."""

from typing import Any

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


def _check(loaded, texts: Any = TEXTS, **options):
    return tv.check_masks(loaded, texts=texts, replacements=1, **options)


def _failed(report) -> set[str]:
    return {finding.rule for finding in report.findings}


@pytest.mark.parametrize("name", families.cases(families.ALL))
def test_a_sound_model_passes_every_rule_that_it_has_kinds_for(name):
    report = _check(families.family(name))
    assert report.sound and not report.notes, str(report)
    rules = ENCODER if name in families.ENCODERS else DECODER if name in families.DECODERS else ENCODER | DECODER
    assert set(report.checked) == rules
    # What is masked adds exactly nothing; only another shape rounds, and in float64 that is far below what is let pass. An
    # expert that gets another number of tokens rounds in float32.
    for rule, size in report.checked.items():
        is_rounded = rule in ("target length", "batch invariance")
        assert size < 1e-10 if is_rounded else size < 1e-6 if name == "switch_transformers" else size == 0
    assert report.precision and report.precision.computed_in == "float32 and float64"


def test_a_leak_as_small_as_rounding_is_no_rounding():
    """Every step is told a little of the last token, in the logits alone."""
    loaded = _own("gpt2")

    def leaking(module, args, kwargs, output):
        ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
        output.logits = output.logits + 3e-6 * ids[:, -1:, None] * torch.linspace(-1, 1, output.logits.shape[-1])
        return output

    loaded.network.model.register_forward_hook(leaking, with_kwargs=True)
    report = _check(loaded)
    assert report.verdict == "leaking" and "future" in _failed(report)


@pytest.mark.parametrize("name", ["gemma2", "marian", "bert"])
def test_without_texts_random_tokens_do_and_progress_counts_every_pass(name):
    shares = []
    report = _check(families.family(name), texts=None, on_progress=shares.append)
    assert report.sound and report.pairs == 8, str(report)
    assert shares == [n / report.replacements for n in range(report.replacements)]


@pytest.mark.parametrize("name", ["gpt2", "gemma2", "marian", "t5"])
def test_without_the_causal_mask_it_fails_by_name(name):
    report = _check(families.family(name), edits=["decoder:off"])
    assert (report.verdict, report.causes) == ("leaking", ("no-causal",)) and "future" in _failed(report)


def test_a_mask_that_is_off_in_one_layer_of_somebodys_code_is_found_there():
    """float64 is set for nobody else: a page may check a model while another thread decodes."""
    loaded, seen = _own("llama"), set()

    def without(module, args, kwargs):
        seen.add(torch.get_default_dtype())
        return args, {**kwargs, "attention_mask": None}

    loaded.network.model.model.layers[1].self_attn.register_forward_pre_hook(without, with_kwargs=True)
    report = _check(loaded)
    assert {"future", "target padding", "batch invariance"} <= _failed(report) and seen == {torch.float32}
    look = next(finding.look for finding in report.findings if finding.rule == "future")
    assert look is not None and (look.kind, look.layer) == ("decoder", 1)


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

    loaded.network.model.register_forward_pre_hook(open_to_all, with_kwargs=True)
    assert _failed(_check(loaded)) == rules


def test_long_texts_are_cut_and_many_refused():
    loaded = families.family("gpt2")
    report = _check(loaded, texts=["w9 " * 40])
    assert report.notes == ("Note: of longer texts the first 16 tokens were read.",)
    assert report.pairs == 1 and "(1 texts," in report.headline
    for texts in ([], ["w9"] * 9, "w9"):
        with pytest.raises(OptionError, match="1 to 8 texts"):
            _check(loaded, texts=texts)


def test_a_checkpoint_takes_texts_too(tiny):
    for edits, rules in ([], set()), (["cross:off"], {"source padding", "batch invariance"}):
        report = _check(tiny, texts=["hello", "bad"], edits=edits)
        assert (report.pairs, _failed(report)) == (2, rules)
