"""The command `check-masks`."""

from typing import Annotated

from transformer_viz.commands._shared import SEED, Edits, Json, Mistake, ModelChoice, print_json, print_lines
from transformer_viz.schema import Range


def run(
    model: ModelChoice,
    text: Annotated[
        list[str] | None,
        "with --model: a text to test with; at most 8 texts, of 16 tokens each; may be repeated (random tokens)",
    ] = None,
    edits: Edits = "",
    mistake: Mistake = None,
    replacements: Annotated[int, "how often each position is replaced at random", Range(1, 100)] = 3,
    seed: Annotated[int, "draw other texts", SEED] = 0,
    json: Json = False,
) -> int:
    """Test that no mask leaks: change what must not be seen, and compare the output. Exit code 0: no leak, 1: a leak."""
    model.check(text or ())

    from transformer_viz.mask_checks.check_masks import check_masks

    loaded = model.load()
    report = check_masks(loaded, texts=text, mistake=mistake, edits=[edits], replacements=replacements, seed=seed)
    if json:
        print_json({"checkpoint": loaded.name, "mistake": mistake, **report.to_json()})
    else:
        print_lines(str(report))
    return 0 if report.sound else 1
