"""The command `counter-proof`."""

from typing import Annotated

from transformer_viz.commands._decoding import DecodingOptions
from transformer_viz.commands._shared import Json, ModelChoice, Text, print_json, print_lines
from transformer_viz.numbers_in_words import number_words, percent_words
from transformer_viz.schema import Range
from transformer_viz.text_table import text_table


def run(
    text: Text,
    model: ModelChoice,
    decoding: DecodingOptions,
    scope: Annotated[
        list[str] | None,
        "move one head (cross.2.3), a layer (cross.2) or all heads of a kind (cross); may be repeated (each of these)",
    ] = None,
    epsilon: Annotated[float, "how much an output probability may change", Range(0, above=True)] = 0.01,
    json: Json = False,
) -> None:
    """Find how far the attention of a run can be moved without changing the output."""
    text = decoding.read(text, model)

    from transformer_viz.attribution.counter_proof import counter_proof, scopes

    loaded = decoding.load(model)
    trace = decoding.decode(loaded, text)
    proofs = [counter_proof(loaded, trace, scope=one, epsilon=epsilon) for one in scope or scopes(loaded)]
    if json:
        # All but the weights.
        names = ("target", "share", "distance", "change")
        rows = [
            {
                "scope": proof.scope,
                "epsilon": proof.epsilon,
                "farthest": proof.farthest.target,
                "moved": [{name: getattr(moved, name) for name in names} for moved in proof.moved],
            }
            for proof in proofs
        ]
        print_json({"checkpoint": loaded.name, "proofs": rows})
        return
    targets = [moved.target for moved in proofs[0].moved]
    cells = [
        (
            proof.scope,
            *(number_words(moved.share, 3) for moved in proof.moved),
            f"{percent_words(proof.farthest.distance)} of the weight elsewhere, {proof.farthest.target}",
        )
        for proof in proofs
    ]
    title = f"largest λ found at which no output probability changes by more than {proofs[0].epsilon:g}, towards"
    print_lines(f"{title}\n{text_table(('', *targets, 'farthest found'), cells, '<' + '>' * len(targets) + '<')}")
