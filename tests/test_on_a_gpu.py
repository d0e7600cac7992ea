"""On a CUDA device everything is what it is on the CPU: decoding, edits, the certificate, and trainings.

Skipped by name where there is none; then nothing here says anything about GPUs.
"""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.attention_ways import WAYS as ATTENTION
from tests.attention_ways import Own
from tests.needs import needs
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import DeviceError
from transformer_viz.model import devices, variants
from transformer_viz.readers.huggingface import loading
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.training.batches import batches
from transformer_viz.training.loop import Trainer
from transformer_viz.training.make_checkpoint import make_checkpoint, make_model
from transformer_viz.training.recipe import Recipe

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    # It recommends numbers of 19 bits; float32 stays float32 here.
    pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores"),
]

TASK = Reverse("abcd", 7, (2, 5))
RECIPE = Recipe(
    task="reverse",
    task_options={"alphabet": "abcd", "max_length": 7, "trained_lengths": [2, 5]},
    variant="pre-norm",
    model={"d_model": 16, "n_heads": 4, "d_ff": 32, "n_encoder_layers": 1, "n_decoder_layers": 1, "dropout": 0.0},
    mix={"uniform": 0.5, "few": 0.5},
    steps=12,
    batch_size=16,
    learning_rate=0.01,
)
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beam": {"strategy": "beam", "beam_size": 3},
    "sample": {"strategy": "sample", "seed": 5},
    "prefix and ban": {"prefix": ["a"], "ban": ["b"]},
    "teacher forcing": {"target": "bad"},
    "scores": {"record": ("weights", "scores")},
    "edits": {"edits": ["cross:1-2", "cross.1.1:zero"]},
    "looking ahead": {"edits": ["decoder:off"]},
    "mistake": {"mistake": "no-causal"},
}


@pytest.fixture(scope="module")
def cuda() -> torch.device:
    return torch.device("cuda")


@pytest.fixture(scope="module")
def on_cuda(tiny: Checkpoint, cuda: torch.device) -> Checkpoint:
    return replace(tiny, network=deepcopy(tiny.network).to(cuda), device=cuda)


def assert_same(here: tv.Trace, there: tv.Trace, tolerance: float) -> None:
    assert there.output_tokens == here.output_tokens
    assert there.kinds == here.kinds
    for kind in here.kinds:
        mine, other = here.attentions[kind].weights, there.attentions[kind].weights
        np.testing.assert_allclose(other, mine, rtol=0, atol=tolerance, equal_nan=True)
        np.testing.assert_array_equal(there.attentions[kind].reasons, here.attentions[kind].reasons)
    for one, two in zip(here.steps, there.steps, strict=True):
        assert two.log_probability == pytest.approx(one.log_probability, abs=tolerance)


@pytest.mark.parametrize("way", WAYS)
def test_a_float64_run_is_that_of_the_cpu(tiny, on_cuda, way):
    here, there = (tv.decode(each, "hello", **WAYS[way]) for each in (tiny, on_cuda))
    assert_same(here, there, 1e-7)  # a Trace is float32
    assert there.made_by["device"].startswith("cuda · ")


def test_a_padded_batch_is_that_of_the_cpu(tiny, on_cuda):
    texts = ["hello", "a", "bad cab"]
    for here, there in zip(tv.decode(tiny, texts), tv.decode(on_cuda, texts), strict=True):
        assert_same(here, there, 1e-7)


@pytest.mark.parametrize("variant", variants.names())
def test_every_variant_in_float64(variant, make_model, make_tiny, cuda):
    settings = variants.settings(variant)
    here = make_tiny(make_model(3, **{**settings, "d_model": 20, "n_heads": 5, "n_encoder_layers": 2, "n_decoder_layers": 3}))
    there = replace(here, network=deepcopy(here.network).to(cuda), device=cuda)
    assert_same(tv.decode(here, "hello"), tv.decode(there, "hello"), 1e-7)


@pytest.mark.parametrize(
    ("name", "text"), [("reverse", "Hello, World!"), ("numbers", "siebenhundertdrei"), ("dates", "3. Mai 1999")]
)
def test_shipped_checkpoints_write_the_same(name, text):
    here, there = (tv.decode(tv.load_checkpoint(name, device=each), text) for each in ("cpu", "cuda"))
    assert_same(here, there, 1e-4)


@needs("transformers")
@pytest.mark.parametrize("name", ["marian", "t5", "gpt2", "gemma2", "bert"])
def test_models_of_others_write_the_same(name, cuda):
    from tests.readers import families

    here = families.family(name)
    there = loading.wrap_model(families.untapped(name).to(cuda), here.tokenizer.tokenizer, name)
    ways: list[dict[str, Any]] = [{}]
    if here.network.kind.writes:
        ways = [
            {"max_length": 9},
            {"strategy": "beam", "beam_size": 3},
            {"strategy": "sample", "seed": 3},
            {"edits": ["decoder:off"]},
        ]
    for way in ways:
        # float32 on both: T5 has large scores.
        assert_same(tv.decode(here, families.TEXTS[0], **way), tv.decode(there, families.TEXTS[0], **way), 2e-3)
        for one, two in zip(*(tv.decode(each, list(families.TEXTS)) for each in (here, there)), strict=True):
            assert_same(one, two, 2e-3)


def test_the_certificate_says_the_same(tiny, on_cuda):
    for mistake in (None, "no-causal"):
        here, there = (tv.check_masks(each, mistake=mistake) for each in (tiny, on_cuda))
        assert there.sound == here.sound == (mistake is None)


STACKS: dict[str, tuple[list[int] | None, list[int] | None]] = {
    "both": ([5, 9, 3, 7, 0], [2, 8, 4, 6, 3]),
    "encoder": ([5, 9, 3, 7, 0], None),
    "decoder": (None, [2, 8, 4, 6, 3]),
}


class OnCuda(Own):
    """A model of somebody's own; masks and ids are made on its device."""

    def forward(self, *ids: torch.Tensor) -> torch.Tensor:
        with torch.device(self.output.weight.device):
            return super().forward(*ids)


@pytest.mark.parametrize("way", ATTENTION)
@pytest.mark.parametrize("stacks", STACKS)
def test_attention_of_any_module_is_seen_as_on_the_cpu(way, stacks, cuda):
    torch.manual_seed(3)
    module = OnCuda(ATTENTION[way], stacks).double().requires_grad_(False)
    here = tv.trace_module(module, *STACKS[stacks], pad_id=0)
    there = tv.trace_module(deepcopy(module).to(cuda), *STACKS[stacks], pad_id=0)
    assert there.kinds == here.kinds
    for kind in here.kinds:
        np.testing.assert_allclose(there.attentions[kind].weights, here.attentions[kind].weights, atol=1e-6)
        np.testing.assert_array_equal(there.attentions[kind].reasons, here.attentions[kind].reasons)


@pytest.mark.parametrize("options", [{}, {"strategy": "beam", "beam_size": 3}, {"edits": ["cross:1-2", "cross.1.1:zero"]}])
def test_a_module_of_ones_own_decodes_as_on_the_cpu(options, cuda):
    torch.manual_seed(3)
    module = OnCuda(ATTENTION["by_torch"]).double().requires_grad_(False)
    words = ["<pad>", "<s>", "</s>", *"abcdefghij"]
    here, there = (
        tv.decode(tv.wrap(one, words, start="<s>", end="</s>", longest=16), "abcd", max_length=6, **options)
        for one in (module, deepcopy(module).to(cuda))
    )
    assert_same(here, there, 1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_arrays_and_modules_in_half_precision_come_from_the_gpu(dtype, cuda):
    weights = torch.rand(1, 2, 4, 4, device=cuda).softmax(-1).to(dtype).requires_grad_()
    trace = tv.show((weights, weights), list("abcd"))
    np.testing.assert_allclose(trace.encoder.weights[0], weights[0].detach().float().cpu().numpy())
    module = OnCuda(ATTENTION["by_torch"], "decoder").to(cuda, dtype)
    np.testing.assert_allclose(tv.trace_module(module, None, [2, 8, 4]).decoder.weights.sum(-1), 1, atol=5e-3)


def trained(device: torch.device, recipe: Recipe) -> list[float]:
    trainer = Trainer(make_model(recipe, TASK), batches(recipe, TASK), recipe, device)
    return [event.loss for event in trainer.run(lambda step: True)]


@pytest.mark.parametrize("variant", variants.names())
def test_a_training_goes_as_on_the_cpu(variant, cuda):
    recipe = replace(RECIPE, variant=variant)
    assert trained(cuda, recipe) == pytest.approx(trained(torch.device("cpu"), recipe), rel=2e-3)


@pytest.mark.parametrize("change", [{"precision": "bfloat16"}, {"sharpness": 0.1, "sharpness_from": 0.0}])
def test_the_ways_to_train_on_a_gpu_come_near_the_plain_one(change, cuda):
    assert trained(cuda, replace(RECIPE, **change))[0] == pytest.approx(trained(cuda, RECIPE)[0], rel=0.05)


def test_a_training_that_was_stopped_goes_on(tmp_path: Path):
    options: dict[str, Any] = {"device": "cuda", "samples": None, "save_seconds": 0}
    make_checkpoint(RECIPE, tmp_path / "whole", **options)
    answers: Any = iter(["go on"] * 5 + ["pause"] * 99)
    assert make_checkpoint(RECIPE, tmp_path / "parts", **options, control=lambda: next(answers)) is None
    make_checkpoint(RECIPE, tmp_path / "parts", **options, resume=True)
    whole, parts = (tv.load_checkpoint(str(tmp_path / name), device="cpu") for name in ("whole", "parts"))
    for name, weight in whole.network.state_dict().items():
        torch.testing.assert_close(parts.network.state_dict()[name], weight, rtol=1e-4, atol=1e-5)


def test_a_full_gpu_is_said(cuda):
    with pytest.raises(DeviceError, match=r"ran out of memory.*choose another device"), devices.memory_errors(cuda):
        torch.empty(2**50, dtype=torch.uint8, device=cuda)
