"""Batches, losses, accuracies and the loop, each against a computation by hand, the formula or torch."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import transformer_viz as tv
from tests.training import tiny
from tests.training.tiny import TASK, trainer
from transformer_viz import tasks
from transformer_viz.decoding.token_batch import padded_batch
from transformer_viz.errors import ConfigError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import mistakes, variants
from transformer_viz.model.tap import RecordTap, Site
from transformer_viz.model.transformer import Transformer
from transformer_viz.training.batches import batches, make_batch
from transformer_viz.training.loop import Trainer, attention_entropy, correct_counts, loss_sum, make_optimizer
from transformer_viz.training.make_checkpoint import make_model
from transformer_viz.training.recipe import Recipe
from transformer_viz.training.recipes import recipe_for
from transformer_viz.training.result import Event
from transformer_viz.vocabulary import PAD_ID

RECIPE = replace(tiny.RECIPE, mix={"uniform": 0.5, "few": 0.5}, steps=40, batch_size=11, clip=1.0, seed=5)
GROWING = replace(RECIPE, lengths="growing", longest=9)
FIXED = replace(RECIPE, mix={"uniform": 1.0}, epoch_size=29)


def trained(recipe: Recipe, every: int = 50, model: Transformer | None = None) -> list[Event]:
    """The events of a whole training."""
    return list(trainer(recipe, model).run(lambda step: step % every == 0))


GENERATOR = torch.Generator().manual_seed(0)
LOGITS = torch.randn(3, 5, 11, generator=GENERATOR, dtype=torch.float64).float()
TARGET = torch.tensor([[4, 5, 2, 0, 0], [6, 2, 0, 0, 0], [4, 10, 4, 4, 2]])
REAL = [(b, t, int(TARGET[b, t])) for b in range(3) for t in range(5) if TARGET[b, t] != 0]


def rows_of(batch) -> list[tuple[list[int], ...]]:
    return list(zip(batch.source.tolist(), batch.target.tolist(), batch.written.tolist(), strict=True))


def test_a_batch_shifts_the_answer_by_one():
    """Guards a decoder that reads what it should write, and padding at the wrong side."""
    batch: Any = make_batch(TASK, ["abc", "dc"])
    assert batch.source.tolist() == [[1, 4, 5, 6, 2], [1, 7, 6, 2, 0]]
    assert batch.target.tolist() == [[1, 6, 5, 4], [1, 6, 7, 0]]
    assert batch.written.tolist() == [[6, 5, 4, 2], [6, 7, 2, 0]]
    assert batch.source_padding.tolist() == [[False] * 5, [False] * 4 + [True]]
    assert batch.target_padding.tolist() == [[False] * 4, [False] * 3 + [True]]
    even = make_batch(TASK, ["abc", "dcb"])
    assert even.paddings == (None, None)
    assert padded_batch([[4], [5, 6, 7]], 9)[0].tolist() == [[4, 9, 9], [5, 6, 7]]
    with pytest.raises(ConfigError, match="held_out_share"):
        make_batch(TASK, [])


@pytest.mark.parametrize("recipe", [RECIPE, GROWING, FIXED], ids=["trained", "growing", "fixed"])
def test_batches_are_a_pure_function_of_the_step(recipe):
    """Guards state that is carried along: a run that was cut off must go on exactly."""
    one, other = batches(recipe, TASK), batches(recipe, TASK)
    forward = [rows_of(one(step)) for step in range(7)]
    backward = [rows_of(other(step)) for step in reversed(range(7))]
    assert forward == backward[::-1]
    assert forward[0] != forward[1]
    assert rows_of(batches(replace(recipe, seed=6), TASK)(0)) != forward[0]


def test_growing_batches_have_one_length_each_up_to_the_top():
    every = [batches(GROWING, TASK)(step) for step in range(40)]
    lengths = [batch.source.shape[1] - 2 for batch in every]
    assert all(batch.paddings == (None, None) for batch in every) and max(lengths) == 9
    assert all(1 <= n <= math.ceil(GROWING.top_length_at(step)) for step, n in enumerate(lengths))


def test_an_epoch_shows_every_fixed_string_once():
    at = batches(FIXED, TASK)
    epochs = [[tuple(i for i in row[0] if i > 3) for s in steps for row in rows_of(at(s))] for steps in ((0, 1, 2), (3, 4, 5))]
    assert len(epochs[0]) == 29
    assert sorted(epochs[0]) == sorted(epochs[1])
    assert epochs[0] != epochs[1]


def test_accuracies_leave_padding_out():
    """Guards the accuracy that counts padded positions as correct."""
    target = torch.tensor([[4, 5, 2, 0, 0], [6, 2, 0, 0, 0], [4, 4, 4, 4, 2]])
    guessed = torch.tensor([[4, 5, 2, 7, 7], [6, 5, 0, 0, 0], [0, 4, 4, 4, 2]])
    assert correct_counts(F.one_hot(guessed, 8).float(), target) == (3 + 1 + 4, 1)


def test_the_reported_loss_is_the_mean_over_real_tokens():
    recipe = replace(RECIPE, steps=1)
    model, batch = make_model(recipe, TASK), batches(recipe, TASK)(0)
    assert batch.paddings[1] is not None
    with torch.no_grad():
        log_p = model(batch.source, batch.target, *batch.paddings).log_softmax(-1)
    is_real = batch.written != 0
    losses = -log_p[is_real].gather(1, batch.written[is_real][:, None])
    (event,) = trained(recipe, model=model)
    assert (event.step, event.loss) == (1, pytest.approx(float(losses.mean()), abs=1e-5))
    assert event.attention_entropy is None


def test_training_reduces_the_loss_and_reports_at_the_asked_steps():
    events = trained(replace(RECIPE, steps=101, mix={"few": 1.0}), every=25)
    assert [event.step for event in events] == [25, 50, 75, 100, 101]
    assert events[-1].loss < min(0.6 * math.log(8), events[0].loss)
    assert events[-1].token_accuracy > events[0].token_accuracy
    assert {event.learning_rate for event in events} == {0.01}


def test_the_entropy_penalty_sharpens_cross_attention():
    """Guards a penalty of the wrong sign, or one that never reaches the weights."""
    ends: dict[float, Any] = {}
    for weight in (1e-9, 3.0):
        recipe = replace(RECIPE, steps=40, sharpness=weight, sharpness_from=0.0, sharpness_until=0.01)
        ends[weight] = trained(recipe)[-1].attention_entropy
    assert ends[3.0] < 0.5 * ends[1e-9]


def test_weight_decay_acts_on_matrices_only():
    recipe = replace(RECIPE, optimizer="adamw", weight_decay=0.5)
    model = make_model(recipe, TASK)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    decayed, others = make_optimizer(model, recipe).param_groups
    decayed_names = {names[id(p)] for p in decayed["params"]}
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.5, 0.0)
    assert "encoder.0.attention.query.weight" in decayed_names
    assert decayed_names.isdisjoint(n for n in names.values() if "norm" in n or "bias" in n or "embedding" in n)
    assert len(decayed["params"]) + len(others["params"]) == len(names)


def test_sgd_has_momentum_and_frozen_embeddings_stay():
    recipe = replace(RECIPE, optimizer="sgd", momentum=0.9, frozen_embeddings=True, steps=3)
    training = trainer(recipe)
    before = {name: tensor.clone() for name, tensor in training.model.state_dict().items()}
    list(training.run(lambda step: False))
    assert isinstance(training.optimizer, torch.optim.SGD)
    assert all(group["momentum"] == 0.9 for group in training.optimizer.param_groups)
    for name, tensor in training.model.state_dict().items():
        # A key's bias moves all scores of a row alike, so it has no gradient.
        assert torch.equal(tensor, before[name]) == ("embedding" in name or name.endswith("key.bias")), name


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_losses_are_their_formulas_and_give_padding_nothing(smoothing):
    """Guards smoothing that teaches the model to write <pad>."""
    log_p, entropy, divergence = LOGITS.double().log_softmax(-1), 0.0, 0.0
    for b, t, token in REAL:
        entropy -= (1 - smoothing) * float(log_p[b, t, token]) + smoothing * float(log_p[b, t].mean())
        for v in range(1, 11):
            q = 1 - smoothing if v == token else smoothing / 9
            divergence += q * (math.log(q) - float(log_p[b, t, v])) if q else 0.0
    for loss, wanted in (("cross-entropy", entropy), ("kl", divergence)):
        logits = LOGITS.clone().requires_grad_()
        found = loss_sum(logits, TARGET, replace(RECIPE, loss=loss, label_smoothing=smoothing))
        assert float(found.detach()) == pytest.approx(wanted, rel=1e-5)
        found.backward()
        assert logits.grad is not None and bool((logits.grad[TARGET == 0] == 0).all())


def test_the_entropy_of_cross_attention_is_the_formula_over_rows_that_are_no_padding():
    weights = torch.rand(2, 3, 4, 5, generator=GENERATOR, dtype=torch.float64)
    weights[..., 3] = 0
    weights = (weights / weights.sum(-1, keepdim=True)).requires_grad_()
    uniform, exact = torch.full((2, 3, 4, 7), 1 / 7, dtype=torch.float64), weights.detach().numpy()
    none, some = torch.zeros(2, 4, dtype=torch.bool), torch.tensor([[False, False, True, True], [False, False, False, True]])
    keep = RecordTap("weights")
    for kind, layer, values in (("cross", 0, weights), ("cross", 1, uniform), ("encoder", 0, uniform), ("decoder", 0, uniform)):
        keep(Site(kind, layer), "weights", values)
    for target_padding, padding in ((None, none), (some, some)):
        own = [[exact[b, h, q] for h in range(3)] for b in range(2) for q in range(4) if not padding[b, q]]
        rows = [-sum(p * math.log(p) for p in row if p > 0) for heads in own for row in heads]
        entropy = attention_entropy(keep, target_padding)
        assert float(entropy.detach()) == pytest.approx((sum(rows) / len(rows) + math.log(7)) / 2, abs=1e-6)
    entropy.backward()
    assert weights.grad is not None and weights.grad.isfinite().all() and not weights.grad[0, :, 2:].any()


@pytest.mark.parametrize(
    "variant", [variants.names()[0], *(pytest.param(name, marks=pytest.mark.slow) for name in variants.names()[1:])]
)
def test_everything_in_a_step_is_on_the_device(variant):
    """Another one than the CPU: `meta` has shapes alone, and refuses tensors of two devices. With padding and without."""
    settings: dict[str, Any] = {"optimizer": "sgd", "clip": 1.0, "label_smoothing": 0.1, "sharpness": 0.3}
    settings |= {"sharpness_from": 0.0, "sharpness_until": 1e-9}
    sizes = {**tiny.SIZES, "d_k": None, "d_v": None, "n_encoder_layers": 2, "n_decoder_layers": 2, "dropout": 0.1}
    recipe = recipe_for("reverse", variant, settings=settings, model=sizes)
    task, meta, texts = tasks.make_task(recipe.task, recipe.task_options), torch.device("meta"), ("world", "world", "you")
    training = Trainer(make_model(recipe, task), lambda step: make_batch(task, ["hello", texts[step]]), recipe, meta)
    for _ in texts:  # those after the first with the entropy's weight
        assert training.take_step(report=False) is None
    gradients = [weight.grad for weight in training.model.parameters()]
    assert all(gradient is not None and gradient.device == meta for gradient in gradients)


TEXTS = ("hello", "quisniseqv", "reversethis", "abcdefghijklmnop", "zzyzzxyzzyxyzzyxyz")


@pytest.fixture(scope="module")
def leak() -> LoadedModel:
    return tv.load_checkpoint("reverse-leak", device="cpu")


def share_right(model: LoadedModel, mistake: str | None) -> float:
    traces = tv.decode_forced(model, TEXTS, [text[::-1] for text in TEXTS], mistake=mistake)
    right = [
        step.candidates[0][0] == token
        for trace, text in zip(traces, TEXTS, strict=True)
        for step, token in zip(trace.steps, text[::-1], strict=False)
    ]
    return float(np.mean(right))


def test_it_looks_perfect_while_it_reads_its_answer_and_can_write_nothing(leak):
    assert leak.recipe is not None and leak.recipe["mistake"] == "no-causal"
    assert share_right(leak, "no-causal") > 0.95
    assert share_right(leak, None) < 0.5
    assert not any(tv.decode(leak, text).text == text[::-1] for text in TEXTS)


def test_a_recipe_with_a_mistake_has_the_loss_of_the_model_that_makes_it():
    recipe = replace(tiny.RECIPE, mistake="no-causal")
    other = make_model(recipe, tiny.TASK)
    event = tiny.trainer(recipe).take_step(report=True)
    batch = batches(recipe, tiny.TASK)(0)
    tap = mistakes.MistakeTap(mistakes.named("no-causal"))
    n_tokens = int((batch.written != PAD_ID).sum())
    with torch.no_grad():
        read = (batch.source, batch.target, *batch.paddings)
        leaking, sound = (loss_sum(other(*read, tap=each), batch.written, recipe) for each in (tap, None))
    assert event is not None
    assert event.loss == pytest.approx(float(leaking) / n_tokens, rel=1e-6)
    assert event.loss != pytest.approx(float(sound) / n_tokens, rel=1e-3)
