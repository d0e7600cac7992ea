"""The command `effect`."""

from dataclasses import asdict
from typing import Annotated

from transformer_viz.commands._shared import SEED, Edits, Json, MaxLength, Mistake, ModelChoice, print_json
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import number_words
from transformer_viz.schema import Range


def run(
    model: ModelChoice,
    text: Annotated[list[str] | None, "a text; may be repeated (texts drawn from the task)"] = None,
    edits: Edits = "",
    mistake: Mistake = None,
    samples: Annotated[int | None, "without --text: how many texts to draw (500)", Range(1, 5000)] = None,
    seed: Annotated[int, "without --text: draw other texts", SEED] = 0,
    max_length: MaxLength = None,
    json: Json = False,
) -> None:
    """Count how many texts come out differently after a change of masks or heads."""
    if not edits and mistake is None:
        raise OptionError("nothing is changed; give --edits or --mistake")
    model.check(text or ())

    from transformer_viz.mask_checks.effect import measure_effect

    loaded = model.load()
    result = measure_effect(loaded, text, edits=[edits], mistake=mistake, samples=samples, seed=seed, max_length=max_length)
    if json:
        print_json({"checkpoint": loaded.name, "edits": edits, "mistake": mistake, **asdict(result)})
        return
    print(f"changed       {number_words(result.changed, 4)}   of {result.samples} {'texts' if text else 'fresh strings'}")
    if result.exact_before is not None and result.exact_after is not None:
        before, after = number_words(result.exact_before, 4), number_words(result.exact_after, 4)
        print(f"exact match   {before} without the change, {after} with it")
