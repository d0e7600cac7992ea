"""The command `evaluate`."""

from dataclasses import replace
from typing import Annotated, Any

from transformer_viz.commands._shared import SEED, Checkpoint, Device, Json, print_json, print_lines
from transformer_viz.numbers_in_words import number_words
from transformer_viz.schema import Range
from transformer_viz.terms import head_title
from transformer_viz.text_display import display_text
from transformer_viz.text_table import number_cell, text_table

_JUDGED_BY = {
    "held-out": "texts that training never saw",
    "fresh": "texts drawn anew",
    "trained": "texts, the same that it was trained on",
}


def run(
    checkpoint: Checkpoint = "reverse",
    device: Device = "auto",
    samples: Annotated[int, "how many texts to draw, evenly over all lengths"] = 10_000,
    seed: Annotated[int, "draw other texts", SEED] = 0,
    beyond: Annotated[int | None, "also measure N lengths beyond the longest", Range(1, 1000)] = None,
    json: Json = False,
) -> None:
    """Measure a checkpoint on texts that training did not see: exact match, and attention on the right token."""
    from transformer_viz.checkpoints import load_checkpoint, task_of

    task_of(checkpoint).check_samples(samples, "--samples")

    from transformer_viz.evaluation.evaluate import MOST_SAMPLES, accuracy_by_length, evaluate, lengths_beyond
    from transformer_viz.model import devices

    model = load_checkpoint(checkpoint, device)
    # Found now, not after minutes of decoding.
    lengths = () if beyond is None else lengths_beyond(model, beyond)
    result = evaluate(model, samples, seed)
    longer = None
    if lengths:
        # As many strings of a length as an evaluated one had, and the same best head.
        n = min(MOST_SAMPLES, max(1, samples // len(model.task.evaluated_lengths)))
        accuracy = accuracy_by_length(model, lengths, n, seed)
        best = result.get("best_head")
        longer = (accuracy if best is None else replace(accuracy, fixed_head=(best["layer"], best["head"]))).to_json()
    if json:
        both = {} if longer is None else {"beyond": longer}
        print_json({"checkpoint": model.name, "device": devices.title(model.device), **result, **both})
        return
    print_evaluation(result)
    if longer is not None:
        first, last = longer["trained"]
        print_lines(f"beyond, {longer['samples']} strings a length; {model.name} was trained on {first} to {last} tokens")
        rows = [
            (
                str(row["length"]),
                number_words(row["exact_match"], 4),
                f"{number_words(row['exact_match_low'], 4)}-{number_words(row['exact_match_high'], 4)}",
                number_words(row["token_accuracy"], 4),
                number_cell(row["best_head_mass"], 4),
                "trained" if row["is_trained"] else "",
            )
            for row in longer["lengths"]
        ]
        # The interval says how well a share of so few strings is known.
        print(text_table(("length", "exact", "95 % interval", "tokens right", "best head", ""), rows, "<>>>><"))


def print_evaluation(result: dict[str, Any]) -> None:
    """Prints the result of `evaluate`, for people."""
    judged_by = _JUDGED_BY[result.get("judged_by", "fresh")]
    print_lines(
        f"exact match   {number_words(result['exact_match'], 4)}   of {result['samples']} {judged_by}, seed {result['seed']}"
    )
    if best := result.get("best_head"):
        place = head_title(best["layer"], best["head"])
        print_lines(f"best head     {number_words(result['best_head_mass'], 4)}   of its attention on the right token, {place}")
    for name in ("source", "length"):
        print_lines(f"by {name}")
        for key, share in result[f"by_{name}"].items():
            print_lines(f"  {key:14}{number_words(share, 4)}")
    for failure in result["failures"]:
        print_lines(f"wrong: “{display_text(failure['source'])}” became “{display_text(failure['output'])}”")
