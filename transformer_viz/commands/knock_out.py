"""The command `knock-out`."""

from typing import Annotated

from transformer_viz.commands._shared import Json, ModelChoice, TextsOptions, print_result
from transformer_viz.schema import Choice, Range
from transformer_viz.terms import INSTEAD


def run(
    model: ModelChoice,
    texts: TextsOptions,
    how: Annotated[
        str, "what replaces the output of a head: zeros, its mean, or that of uniform attention", Choice(INSTEAD)
    ] = "zero",
    suffices: Annotated[
        float | None, "also remove heads one after the other while this share of right answers stays, as in 0.95", Range(0)
    ] = None,
    json: Json = False,
) -> None:
    """Measure over many texts what a model loses without each of its heads."""
    model.check(texts.text or ())

    from transformer_viz.attribution.knock_out import knock_out, remove_heads

    loaded = model.load()
    traces = texts.traces(loaded)
    result, both = knock_out(loaded, traces, how=how, seed=texts.seed), {}
    if suffices is not None:
        heads = remove_heads(loaded, traces, how=how, least=suffices)
        both = {name: list(map(str, places)) for name, places in zip(("removed", "left"), heads, strict=True)}
    print_result(result, json, checkpoint=loaded.name, **both)
    if both and not json:
        print(f"removed, in this order: {' '.join(both['removed']) or 'none'}")
        print(f"these heads suffice, and each of them is needed: {' '.join(both['left']) or 'none'}")
