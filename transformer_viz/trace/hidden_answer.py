"""A run with its answer covered from a step on, for people who guess it; and tokens joined to text as the run spells them."""

from collections.abc import Sequence
from dataclasses import replace

from transformer_viz.language import later
from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.steps import Step
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import SPECIAL_TOKENS

HIDDEN = "?"
"""Stands for every token that is covered."""
COVERED = later("covered until you answer")
"""The words for what is covered and for its row."""
_NOTHING = Step(token=HIDDEN, probability=0.0, log_probability=float("-inf"), rank=None, candidates=())


def hide_answer(trace: Trace, step: int) -> Trace:
    """Covers what a run writes from a step on, and the attention rows of these steps.

    The result has as many steps as the run, so that pictures of both are alike. Covered tokens are `HIDDEN`; covered rows
    (`Attention.is_covered`) have no weight and count as masked. The true answer and the fills of mask tokens are left out. The
    encoder's rows stay, since it has read everything before the first step.

    Args:
        trace: the run.
        step: from 0; its own row is covered too. What was given is never covered.
    """
    step = max(step, trace.written.start)
    known = trace.output_tokens[:step]
    # What a step reads is what the step before it wrote.
    read = trace.target_tokens[: step + 1]
    n_covered = max(0, trace.n_steps - step)
    written = (*known, *(HIDDEN for _ in trace.output_tokens[step:]))
    attentions: dict[Kind, Attention] = {}
    for kind, attention in trace.attentions.items():
        attentions[kind] = attention if kind == "encoder" else _cover(attention, range(step, len(attention.queries)))
    return replace(
        trace,
        attentions=attentions,
        text=between(trace).join(token for token in written[trace.written] if token not in SPECIAL_TOKENS),
        target_tokens=(*read, *(HIDDEN,) * (trace.n_steps - len(read))),
        output_tokens=written,
        steps=(*trace.steps[:step], *(_NOTHING,) * n_covered) if trace.steps else (),
        alignment=(None,) * trace.n_steps,
        expected=None,
        expected_tokens=None,
        fills=(),
        search=None,
        target_ids=None,
        output_ids=None,
        groups={},
        insides=(),
        attributions={},
    )


def cover_rows(trace: Trace, kind: Kind, rows: range) -> Trace:
    """Covers rows of one kind alone, as `hide_answer` does, and what is known of their insides; what is written stays."""
    covered = {**trace.attentions, kind: _cover(trace.attentions[kind], rows)}
    return replace(trace, attentions=covered, groups={}, insides=(), attributions={})


def _cover(attention: Attention, rows: range) -> Attention:
    weights, reasons, here = attention.weights.copy(), attention.reasons.copy(), slice(rows.start, rows.stop)
    weights[:, :, here], reasons[..., here, :] = 0, Reason.UNKNOWN
    return replace(attention, weights=weights, reasons=reasons, scores=None, covered_from=rows.start, covered_to=rows.stop)


def between(trace: Trace) -> str:
    """The separator of two output tokens in the text: nothing, or a space where tokens are words or syllables.

    Tokens with ids, which are those of other libraries' models, contain their own spaces.
    """
    symbols = _symbols(trace)
    if trace.output_ids is not None:
        return " " if " ".join(symbols) == trace.text else ""
    return "" if "".join(symbols) == trace.text else " "


def _symbols(trace: Trace) -> list[str]:
    """The written tokens as text."""
    return [token for token in trace.output_tokens[trace.written] if token not in SPECIAL_TOKENS]


def spelt(trace: Trace, tokens: Sequence[str]) -> list[str]:
    """The first tokens that were read or written, each with what stands before it in the text.

    Words that were made of tokens know no spaces: those of the text are taken, as far as it goes on with these words, and
    else one space.
    """
    space = between(trace)
    text = trace.source + trace.text if trace.is_given(0) else trace.text
    if not space or space.join(_symbols(trace)) == trace.text:
        return [space + token if place else token for place, token in enumerate(tokens)]
    parts, at = [], 0
    for token in tokens:
        begin = next((place for place in range(at, len(text)) if not text[place].isspace()), at)
        is_next = text.startswith(token, begin)
        before = text[at:begin] if is_next else space
        parts.append(before + token if parts else token)
        at = begin + len(token) if is_next else at
    return parts
