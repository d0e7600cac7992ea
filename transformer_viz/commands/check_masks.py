"""The command `check-masks`."""

from typing import Annotated

from transformer_viz.commands._shared import SEED, Edits, Json, Mistake, ModelChoice, print_json, print_lines
from transformer_viz.schema import Range


def run(
    model: ModelChoice,
    text: Annotated[list[str] | None, "a text to check with, up to 8 of 16 tokens; by default drawn at random"] = None,
    edits: Edits = "",
    mistake: Mistake = None,
    replacements: Annotated[int, "random replacements of each position", Range(1, 100)] = 3,
    seed: Annotated[int, "another seed, other pairs", SEED] = 0,
    json: Json = False,
) -> int:
    """Prove that no mask leaks: that nothing changes with what must not be seen. Exit code 0: sound, 1: not."""
    model.check(text or ())

    from transformer_viz.mask_checks.check_masks import check_masks

    loaded = model.load()
    report = check_masks(loaded, texts=text, mistake=mistake, edits=[edits], replacements=replacements, seed=seed)
    if json:
        print_json({"checkpoint": loaded.name, "mistake": mistake, **report.to_json()})
    else:
        print_lines(str(report))
    return 0 if report.sound else 1
