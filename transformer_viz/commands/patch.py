"""The command `patch`."""

from typing import Annotated, Any

from transformer_viz.commands._decoding import DecodingOptions
from transformer_viz.commands._shared import Json, ModelChoice, Text, print_json, print_lines
from transformer_viz.numbers_in_words import count_words, number_words
from transformer_viz.schema import Choice
from transformer_viz.text_display import display_text
from transformer_viz.text_table import text_table

_MOST = 15
"""Places that are printed."""


def run(
    text: Text,
    other: Annotated[str, "the text whose run is changed; it needs as many tokens as TEXT"],
    model: ModelChoice,
    decoding: DecodingOptions,
    by: Annotated[str, "put in one head, or all heads of a layer", Choice(("head", "layer"))] = "head",
    where: Annotated[
        list[str] | None, "a kind of attention, or a layer as in cross.20; may be repeated (all, if that is not too much)"
    ] = None,
    json: Json = False,
) -> None:
    """Find the heads that make the difference between two texts, by putting those of one run into the other."""
    text = decoding.read(text, model)
    model.check([other])

    from transformer_viz.attribution.patch import extent, patch

    loaded = decoding.load(model)
    a, b = (decoding.decode(loaded, one) for one in (text, other))
    what: dict[str, Any] = {"by": by, "where": where}
    if not json:
        size = extent(loaded, a, b, **what)
        places = count_words(size.n_places, "place")
        print(f"{places} to try, of at most {size.most:,}; each takes a pass over {size.n_tokens} tokens", flush=True)
    result = patch(loaded, a, b, **what)
    if json:
        fields = {name: getattr(result, name) for name in ("by", "step", "tokens", "differences")}
        effects = {kind: values.tolist() for kind, values in result.effects.items()}
        print_json({"checkpoint": loaded.name, **fields, "effects": effects})
        return
    (ours, theirs), (of_a, of_b) = map(display_text, result.tokens), result.differences
    step = result.step + 1 - a.written.start
    rows = [
        (
            str(effect.place),
            str(effect.query + 1),
            display_text(a.labels(effect.place.kind)[0][effect.query]),
            number_words(effect.value, 3),
        )
        for effect in result.largest(_MOST)
    ]
    print_lines(
        f"the runs differ from step {step} on: {ours} and {theirs}; {ours} leads by {number_words(of_a, 3)} in the first, "
        f"by {number_words(of_b, 3)} in the second\n"
        f"share of the difference that one place brings back, the {_MOST} largest\n"
        + text_table(("place", "query", "token", "share"), rows, "<><>")
    )
