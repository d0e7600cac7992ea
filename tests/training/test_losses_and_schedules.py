"""Losses and schedules against torch's own and against the formulas."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_viz.model.tap import Keep, Site
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.training.batches import batches
from transformer_viz.training.loop import Trainer, make_optimizer
from transformer_viz.training.losses import attention_entropy, loss_sum
from transformer_viz.training.make_checkpoint import make_model
from transformer_viz.training.recipe import Recipe

RECIPE = Recipe(task="reverse", variant="pre-norm", mix={"uniform": 1.0}, steps=97, batch_size=5, learning_rate=0.3)
GENERATOR = torch.Generator().manual_seed(0)
LOGITS = torch.randn(3, 5, 11, generator=GENERATOR, dtype=torch.float64).float()
TARGET = torch.tensor([[4, 5, 2, 0, 0], [6, 2, 0, 0, 0], [4, 10, 4, 4, 2]])
REAL = [(b, t, int(TARGET[b, t])) for b in range(3) for t in range(5) if TARGET[b, t] != 0]


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.37])
def test_smoothed_cross_entropy_is_the_formula(smoothing):
    log_p = LOGITS.double().log_softmax(-1)
    wanted = sum(-(1 - smoothing) * float(log_p[b, t, token]) - smoothing * float(log_p[b, t].mean()) for b, t, token in REAL)
    recipe = replace(RECIPE, label_smoothing=smoothing)
    assert float(loss_sum(LOGITS, TARGET, recipe)) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.37])
def test_the_divergence_is_the_formula_and_gives_padding_nothing(smoothing):
    """Guards smoothing that teaches the model to write <pad>."""
    log_p = LOGITS.double().log_softmax(-1)
    wanted = 0.0
    for b, t, token in REAL:
        for v in range(1, 11):
            q = 1 - smoothing if v == token else smoothing / 9
            wanted += q * (math.log(q) - float(log_p[b, t, v])) if q else 0.0
    recipe = replace(RECIPE, loss="kl", label_smoothing=smoothing)
    assert float(loss_sum(LOGITS, TARGET, recipe)) == pytest.approx(wanted, rel=1e-5)
    logits = LOGITS.clone().requires_grad_()
    loss_sum(logits, TARGET, recipe).backward()
    assert logits.grad is not None
    assert bool((logits.grad[TARGET == 0] == 0).all())


def test_the_entropy_of_cross_attention_is_the_formula_over_rows_that_are_no_padding():
    weights = torch.rand(2, 3, 4, 5, generator=GENERATOR, dtype=torch.float64)
    weights[..., 3] = 0
    weights = (weights / weights.sum(-1, keepdim=True)).requires_grad_()
    uniform, exact = torch.full((2, 3, 4, 7), 1 / 7, dtype=torch.float64), weights.detach().numpy()
    none, some = torch.zeros(2, 4, dtype=torch.bool), torch.tensor([[False, False, True, True], [False, False, False, True]])
    keep = Keep("weights")
    for kind, layer, values in (("cross", 0, weights), ("cross", 1, uniform), ("encoder", 0, uniform), ("decoder", 0, uniform)):
        keep(Site(kind, layer), "weights", values)
    for target_padding, padding in ((None, none), (some, some)):
        own = [[exact[b, h, q] for h in range(3)] for b in range(2) for q in range(4) if not padding[b, q]]
        rows = [-sum(p * math.log(p) for p in row if p > 0) for heads in own for row in heads]
        entropy = attention_entropy(keep, target_padding)
        assert float(entropy.detach()) == pytest.approx((sum(rows) / len(rows) + math.log(7)) / 2, abs=1e-6)
    entropy.backward()
    assert weights.grad is not None and weights.grad.isfinite().all() and not weights.grad[0, :, 2:].any()


@given(st.integers(5, 300), st.sampled_from([0.1, 0.3, 0.5]))
def test_one_cycle_is_torchs(steps, rise):
    recipe = replace(RECIPE, steps=steps, schedule="one-cycle", warm_up=rise)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.3, total_steps=steps, pct_start=rise, cycle_momentum=False
    )
    for step in range(steps):
        assert recipe.learning_rate_at(step) == pytest.approx(schedule.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        if step + 1 < steps:
            schedule.step()


def test_inverse_sqrt_is_that_of_the_paper():
    """lr ∝ min(step^-0.5, step · warmup^-1.5), scaled to its peak (Vaswani et al. 2017, equation 3)."""
    recipe = replace(RECIPE, steps=1000, schedule="inverse-sqrt", warm_up=0.1)
    paper = [min(n**-0.5, n * 100**-1.5) * 100**0.5 * 0.3 for n in range(1, 1001)]
    assert [recipe.learning_rate_at(step) for step in range(1000)] == pytest.approx(paper, rel=1e-9)


def test_sgd_has_momentum_and_frozen_embeddings_stay():
    task = Reverse("abcd", 7, (2, 5))
    sizes = {"d_model": 12, "n_heads": 3, "d_ff": 13, "n_encoder_layers": 1, "n_decoder_layers": 1}
    recipe = replace(RECIPE, model=sizes, optimizer="sgd", momentum=0.9, frozen_embeddings=True, steps=3)
    model = make_model(recipe, task)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trainer = Trainer(model, batches(recipe, task), recipe, torch.device("cpu"))
    list(trainer.run(lambda step: False))
    optimizer = make_optimizer(model, recipe)
    assert isinstance(optimizer, torch.optim.SGD)
    assert all(group["momentum"] == 0.9 for group in optimizer.param_groups)
    for name, tensor in model.state_dict().items():
        # A key's bias moves all scores of a row alike, so it has no gradient.
        assert torch.equal(tensor, before[name]) == ("embedding" in name or name.endswith("key.bias")), name
