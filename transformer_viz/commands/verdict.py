"""The command `verdict`."""

from dataclasses import asdict
from typing import Annotated, Any

from transformer_viz.commands._shared import CauseKind, Json, Mode, ModelChoice, TextsOptions, print_lines, print_result


def run(
    model: ModelChoice,
    texts: TextsOptions,
    mode: Mode = "word",
    kind: CauseKind = None,
    curve: Annotated[list[str] | None, "also compute the faithfulness curve of a head (cross.2.1); may be repeated"] = None,
    json: Json = False,
) -> None:
    """Measure over many texts how often each head looks at the token that the output depends on."""
    model.check(texts.text or ())

    from transformer_viz.attribution.verdict import faithfulness, judge_attention

    loaded = model.load()
    traces = texts.traces(loaded)
    how: dict[str, Any] = {"mode": mode, "kind": kind, "seed": texts.seed}
    result = judge_attention(loaded, traces, **how)
    curves = faithfulness(loaded, traces, curve, **how) if curve else ()
    print_result(result, json, checkpoint=loaded.name, curves=[asdict(one) for one in curves])
    for one in () if json else curves:
        print_lines(str(one))
