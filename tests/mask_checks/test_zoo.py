"""The certificate is right about every animal in the zoo: nothing broken passes, nothing sound is accused."""

from typing import Any

import pytest
import torch

import transformer_viz as tv
from tests.conftest import ALPHABET, SIZES
from tests.mask_checks.zoo.broken import BROKEN
from tests.mask_checks.zoo.hugging_face import HUGGING_FACE
from tests.mask_checks.zoo.parts import PAD, Case
from tests.mask_checks.zoo.sound import SOUND
from tests.needs import slow
from transformer_viz.model import variants
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.tasks.reverse import Reverse

OURS = [*BROKEN, *SOUND]
# torch tells everybody that its nested tensors are a prototype.
quiet = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


def judge(case: Case) -> None:
    report = tv.check_masks(case.make(), **case.options)
    assert report.verdict == case.verdict, str(report)
    rules = {finding.rule for finding in report.findings}
    assert rules == set() if case.rule is None else case.rule in rules, str(report)


@quiet
@pytest.mark.parametrize("case", [slow(case) if case.is_slow else case for case in OURS], ids=lambda case: case.name)
def test_the_verdict_and_the_fault_are_right(case):
    judge(case)


@pytest.mark.parametrize("case", [*map(slow, HUGGING_FACE[:-3]), *HUGGING_FACE[-3:]], ids=lambda case: case.name)
def test_so_they_are_for_models_of_hugging_face(case):
    pytest.importorskip("transformers")
    judge(case)


@pytest.mark.parametrize("dtype", [torch.float32, *map(slow, (torch.bfloat16, torch.float64, torch.float16))], ids=str)
@pytest.mark.parametrize("variant", [variants.names()[0], *map(slow, variants.names()[1:])])
def test_our_own_variants_are_sound_in_every_precision(variant, dtype, make_tiny):
    torch.manual_seed(3)
    sizes: dict[str, Any] = {**variants.settings(variant), **SIZES, "n_encoder_layers": 1, "n_decoder_layers": 1}
    model = Transformer(ModelConfig(**sizes)).eval().requires_grad_(False).to(dtype)
    report = tv.check_masks(make_tiny(model, Reverse(ALPHABET, 3, (1, 3))), replacements=1)
    assert report.sound and report.precision is not None and report.precision.own == str(dtype)[6:], str(report)

    def f(source, target):
        return model(source, target, source == PAD, target == PAD)

    report = tv.check_masks(f, vocabulary_size=len(model.target_embedding.weight), pad_id=PAD, max_length=2, replacements=1)
    assert report.sound, str(report)
