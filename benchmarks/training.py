"""Training throughput against `torch.nn.Transformer`: the same sizes, weights, batches, optimizer and loop (our `Trainer`).

On a GPU ours is trained in half precision and compiled as well; the reference is `nn.Transformer` as it comes.
Batches there are made on the device, for both, so that only the models are compared.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from benchmarks.cases import SIZES
from benchmarks.measure import Line, Number, Report, Target, in_turns
from benchmarks.reference_models import Plain, TorchTransformer
from transformer_viz import tasks
from transformer_viz.errors import ConfigError
from transformer_viz.model import devices
from transformer_viz.training.batch import Batch
from transformer_viz.training.batches import batches
from transformer_viz.training.defaults import recipe_for
from transformer_viz.training.loop import Trainer
from transformer_viz.training.make_checkpoint import make_model
from transformer_viz.training.recipe import Recipe
from transformer_viz.vocabulary import END_ID, PAD_ID, START_ID

TITLE = "training"
TARGETS = {
    "cpu": Target("training on the CPU: times as fast as nn.Transformer", "at least", 1, "×"),
    "gpu": Target("training on a GPU: times as fast as nn.Transformer", "at least", 3, "×"),
}
_BATCH = {"1+1": 256, "6+6": 32}
_GPU_BATCH = {"1+1": 1024, "6+6": 256}
_N_BATCHES, _LONGEST = 8, 64
_BUDGET = 20.0
_OURS, _TORCH = "ours", "nn.Transformer"


def measure(report: Report) -> None:
    """Both sizes on the CPU, and on the GPU where there is one. A target's value is the worst of the sizes."""
    cpu = torch.device("cpu")
    for name in SIZES:
        recipe = _recipe(name, _BATCH[name])
        prepared = _prepared(recipe)
        ours = _trainer(recipe, prepared, cpu)
        works = {_OURS: ours, _TORCH: _trainer(recipe, prepared, cpu, TorchTransformer)}
        _check_same(works[_OURS], works[_TORCH], prepared[0])
        rates = _rates(works, prepared, cpu)
        line = _line(report, f"{name} layers, batch {recipe.batch_size}, float32", rates, _OURS, _TORCH)
        report.worst("cpu", line.ratio, "at least")
    _published(report)
    if torch.cuda.is_available():
        for name in SIZES:
            _on_gpu(name, torch.device("cuda"), report)
    else:
        report.remark("training on a GPU: skipped: no CUDA device")


def _recipe(name: str, batch_size: int, precision: str = "float32") -> Recipe:
    """Reversal of 10 to 19 letters, by a model that computes what `nn.Transformer` does."""
    size = SIZES[name]
    model = {"n_encoder_layers": size["layers"], "n_decoder_layers": size["layers"], "d_model": size["d_model"]}
    return recipe_for(
        "reverse",
        "torch-reference",
        settings={"batch_size": batch_size, "precision": precision, "mix": {"uniform": 1.0}},
        model={**model, "n_heads": size["heads"], "d_ff": size["d_ff"]},
        task_options={"trained_lengths": [10, 19]},
    )


def _prepared(recipe: Recipe) -> list[Batch]:
    batch_at = batches(recipe, tasks.make(recipe.task, recipe.task_options))
    return [batch_at(step) for step in range(_N_BATCHES)]


def _trainer(recipe: Recipe, prepared: list[Batch], device: torch.device, other: Callable[[Any], Any] | None = None) -> Trainer:
    """Our loop around our model, or around another that is made from it."""
    model: Any = make_model(recipe, tasks.make(recipe.task, recipe.task_options))
    trainer = Trainer(model if other is None else other(model), lambda step: prepared[step % len(prepared)], recipe, device)
    trainer.model.train()
    return trainer


def _check_same(ours: Trainer, theirs: Trainer, batch: Batch) -> None:
    """Both start as the same function, or the comparison is of two models."""
    inputs = (batch.source, batch.target_in, batch.source_padding, batch.target_padding)
    with torch.no_grad():
        mine, other = (trainer.model.eval()(*inputs) for trainer in (ours, theirs))
    known = batch.target_out != PAD_ID
    assert torch.allclose(mine[known], other[known], atol=1e-3), "nn.Transformer computes something else"
    ours.model.train()
    theirs.model.train()


def _rates(trainers: dict[str, Trainer], prepared: list[Batch], device: torch.device) -> dict[str, list[float]]:
    """Target tokens a second of every trainer, in turns; a turn is one step on the CPU, one round of the batches on a GPU."""
    steps = 1 if device.type == "cpu" else len(prepared)
    tokens = sum(int((batch.target_out != PAD_ID).sum()) for batch in prepared) / len(prepared)

    def turn(trainer: Trainer) -> None:
        for _ in range(steps):
            trainer._one_step(False)
            trainer.step += 1

    works = {name: lambda t=trainer: turn(t) for name, trainer in trainers.items()}
    synchronize = torch.cuda.synchronize if device.type == "cuda" else None
    seconds = in_turns(works, budget=_BUDGET, most=2 * _N_BATCHES, synchronize=synchronize)
    return {name: [steps * tokens / s for s in each] for name, each in seconds.items()}


def _line(report: Report, what: str, rates: dict[str, list[float]], mine: str, other: str) -> Line:
    ours, theirs = Number.of(mine, rates[mine]), Number.of(other, rates[other])
    return report.add(Line(what, ours, theirs, "tokens/s", len(rates[mine]), "more"))


def _published(report: Report) -> None:
    """The published reversal model beside a plain implementation of its article."""
    recipe, cpu = recipe_for("reverse", "residual-post-norm"), torch.device("cpu")
    prepared = _prepared(recipe)
    plain = "as the article writes it"
    trainers = {_OURS: _trainer(recipe, prepared, cpu), plain: _trainer(recipe, prepared, cpu, Plain)}
    _line(report, "the published reversal model, 1+1 layers", _rates(trainers, prepared, cpu), _OURS, plain)


def _on_gpu(name: str, device: torch.device, report: Report) -> None:
    """Every way to train ours; the fastest counts."""
    plain, half = (_recipe(name, _GPU_BATCH[name], precision) for precision in ("float32", "bfloat16"))
    prepared = [_on_device(plain, step, device) for step in range(_N_BATCHES)]
    what = f"{name} layers, batch {plain.batch_size} of {_LONGEST} letters on {devices.title(device)}"
    bfloat16 = f"{_TORCH}, bfloat16"
    found = []
    compiled = replace(half, compiled=True)
    for way, recipe in (("bfloat16", half), ("bfloat16, compiled", compiled), ("bfloat16, CUDA graphs", half)):
        trainers = {
            (mine := f"{_OURS}, {way}"): _trainer(recipe, prepared, device),
            _TORCH: _trainer(plain, prepared, device, TorchTransformer),
            bfloat16: _trainer(half, prepared, device, TorchTransformer),
        }
        if "graphs" in way:
            trainers[mine].forward = torch.compile(trainers[mine].parallel, mode="reduce-overhead")
        try:
            rates = _rates(trainers, prepared, device)
        except (RuntimeError, ConfigError) as error:  # a compiler that is not there says so in many ways
            report.remark(f"{way}: skipped: {str(error).splitlines()[0]}")
            continue
        found.append(_line(report, what, rates, mine, _TORCH).ratio)
        _line(report, what, rates, mine, bfloat16)
    if found:
        report.worst("gpu", max(found), "at least")


def _on_device(recipe: Recipe, step: int, device: torch.device) -> Batch:
    """Random letters and their reversal, made on the device; all of one length, so nothing is padded."""
    task = tasks.make(recipe.task, recipe.task_options)
    generator = torch.Generator(device).manual_seed(step)
    first, last = max(PAD_ID, START_ID, END_ID) + 2, len(task.source_vocabulary)
    letters = torch.randint(first, last, (recipe.batch_size, _LONGEST), generator=generator, device=device)
    start, end = (torch.full((recipe.batch_size, 1), token, device=device) for token in (START_ID, END_ID))
    answer = letters.flip(1)
    return Batch(torch.cat([start, letters, end], 1), torch.cat([start, answer], 1), torch.cat([answer, end], 1), None, None)
