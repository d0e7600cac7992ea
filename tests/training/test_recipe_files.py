"""A recipe from a file: whatever stands in it, it is trained by, or refused in a sentence before anything is written."""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from transformer_viz.errors import TransformerVizError
from transformer_viz.training import estimate, make_checkpoint
from transformer_viz.training.recipe import Recipe

BASE: dict[str, Any] = {
    "task": "shift",
    "variant": "pre-norm",
    "task_options": {"alphabet": "abcd", "max_length": 7, "trained_lengths": [2, 5], "held_out_share": 0.1, "by": 2},
    "model": {"d_model": 4, "n_heads": 2, "d_ff": 3, "n_encoder_layers": 1, "n_decoder_layers": 1, "max_positions": 16},
    "mix": {"uniform": 1.0},
    "steps": 1,
    "batch_size": 2,
    "learning_rate": 0.01,
}
NUMBERS = (0, 1, 2, 0.5, -1, -0.5, 1.0, 1e30, 10**30, 10**400)
OTHERS = (None, True, False, "", "x", "growing", "sgd", "x" * 10**5, [], [1], [0.5, 0.5], [1, "x"], [[1], [2]], {}, {"x": 1})
NAMED = (
    *({"uniform": 1.0}, {"uniform": 0.5, "few": 0.5}, {"uniform": 0.5, "x": 0.5}, {"uniform": "1"}),
    *({"uniform": 2.0, "few": -1}, {"uniform": 0.5, "few": 0.4999999}),
)


def with_everything(base: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Each field, each value of another type or out of range, and the whole."""
    for name in base:
        for value in (*NUMBERS, *OTHERS, *NAMED):
            yield name, value, {**base, name: value}


def recipes() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    whole = Recipe.from_json(BASE).to_json()
    assert set(whole) == {field.name for field in fields(Recipe)}
    yield from with_everything(whole)
    for part in ("task_options", "model"):
        for name, value, changed in with_everything(BASE[part]):
            yield f"{part}.{name}", value, {**BASE, part: changed}
    for name in BASE:
        yield f"without {name}", None, {key: value for key, value in BASE.items() if key != name}
    yield "colour", "red", {**BASE, "colour": "red"}
    yield "model.source_vocabulary_size", 7, {**BASE, "model": {**BASE["model"], "source_vocabulary_size": 7}}


def test_whatever_a_recipe_says_is_trained_by_or_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(make_checkpoint, "Probe", lambda checkpoint: dict)
    monkeypatch.setattr(estimate, "memory_of_machine", lambda: 4 * 2**30)
    trained, refused, wrong = [], [], []
    for number, (name, value, data) in enumerate(recipes()):
        folder = tmp_path / str(number)
        try:
            recipe = Recipe.from_json(json.loads(json.dumps(data)))
            estimate.check_memory(estimate.estimate(recipe))
            stop = "stop" if recipe.steps > 10 else "go on"
            make_checkpoint.make_checkpoint(recipe, folder, device="cpu", samples=None, control=lambda stop=stop: stop)
            trained.append(name)
        except TransformerVizError as error:
            refused.append(name)
            if folder.exists() or len(str(error)) > 2000:
                wrong.append(f"{name}={str(value)[:80]}: {str(error)[:200]}")
        except Exception as error:
            wrong.append(f"{name}={str(value)[:80]}: {error!r}")
    assert not wrong
    assert {field.name for field in fields(Recipe)} | {"colour", "without task"} <= set(refused)
    assert {"steps", "seed", "betas", "clip", "epoch_size", "mix", "optimizer", "task_options.by", "model.d_ff"} <= set(trained)
