"""One HTML page, without scripts, that shows every number of the heads whose inside a run holds."""

from collections.abc import Sequence

import numpy as np

from transformer_viz.errors import OptionError, join_names
from transformer_viz.export.content import PageTheme, page_title
from transformer_viz.export.pages import THEMES, page
from transformer_viz.inside_head import logit_lens, numbers
from transformer_viz.inside_head.explanations import explain
from transformer_viz.language import say, speaking
from transformer_viz.numbers_in_words import number_words
from transformer_viz.sentences.run_sentences import Sentence, plain, say_sentence
from transformer_viz.terms import REASON_WORDS, head_title, kind_words, place_words
from transformer_viz.text_display import display_token
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.trace import Trace

_STREAMS = ("entered", "added", "residual_before", "residual_after", "projected", "scores")


def inside_html(trace: Trace, *, theme: PageTheme = "auto", large: bool = False, language: str | None = None) -> str:
    """Makes one HTML page of every `Inside` that a run holds. It loads nothing from the network and runs no script.

    Args:
        trace: the run.
        theme: `light`, `dark`, or `auto` for what the reader's system prefers.
        large: bigger letters, for a projector.
        language: as in `html`.

    Raises:
        OptionError: the run holds none, or an impossible theme or language.
    """
    if theme not in THEMES:
        raise OptionError(f"theme {theme!r} is not known; choose one of {join_names(THEMES)}")
    if not trace.insides:
        raise OptionError("This run holds the inside of no head. Record it: trace TEXT --inside cross.1.1:1 -o FILE.npz.")
    with speaking(language):
        return _page(trace, theme, large=large)


def _page(trace: Trace, theme: PageTheme, *, large: bool) -> str:
    """The page in the language of now."""

    def known(inside: Inside, names: Sequence[str]) -> list[str]:
        return [name for name in names if numbers.NUMBERS[name].make(inside) is not None]

    def score_words(inside: Inside) -> str:
        width, scale = len(inside.query), inside.scale or 1.0
        if abs(scale - width**-0.5) < 1e-6:
            words = say("q · k is the sum of {width} products, divided by √{width}", width=width)
        elif scale == 1:
            words = say("q · k is the sum of {width} products, divided by nothing", width=width)
        else:
            words = say("q · k is the sum of {width} products, times {scale:.4f}", width=width, scale=scale)
        if inside.softcap is not None:
            words = say("{score}, softly capped at {limit:g}", score=words, limit=inside.softcap)
        if inside.bias is not None:
            words = say("{score}, and the position bias is added", score=words)
        return say("{score}. A masked key is out, whatever its score.", score=words)

    def row_sentence(inside: Inside) -> Sentence:
        place, token = place_words(inside.row), ("code", display_token(inside.row_token))
        if inside.written is None:
            return say_sentence("The row of {place}, {token}.", place=place, token=token)
        written = ("code", display_token(inside.written))
        return say_sentence("The row of {place}, {token}, which writes {written}.", place=place, token=token, written=written)

    def addresses(inside: Inside, name: str) -> list[str]:
        """The addresses of the shown keys' numbers; empty where no number has anything to explain."""
        addresses = [f"{name}.{key + 1}" for key in numbers.shown_keys(inside)]
        return addresses if name == "dot" or any(len(explain(inside, each).terms) > 1 for each in addresses) else []

    return page(
        "inside.html",
        sheets=("inside.css",),
        title=say("Inside: {run}", run=page_title(trace)),
        root={"data-theme": theme, "class": "large" if large else ""},
        run=page_title(trace),
        insides=trace.insides,
        number=lambda value, places=3: number_words(float(value), places),
        cells=_cells,
        strongest=_strongest,
        score_words=score_words,
        known=known,
        addresses=addresses,
        titles=lambda names: [say(numbers.NUMBERS[name].said) for name in names],
        most_candidates=lambda inside: max(len(step.candidates) for step in inside.lens),
        missing=lambda inside: [name.replace("_", " ") for name in _STREAMS if getattr(inside, name) is None],
        join_names=join_names,
        numbers=numbers.NUMBERS,
        reasons=REASON_WORDS,
        kind_words=kind_words,
        explanation_of=explain,
        head_numbers=numbers,
        logit_lens=logit_lens,
        plain=plain,
        display_token=display_token,
        head_title=head_title,
        row_sentence=row_sentence,
    )


def _strongest(numbers: np.ndarray) -> float:
    """The number that has the strongest colour."""
    return float(np.nan_to_num(np.abs(numbers)).max(initial=0)) or 1.0


def _cells(vector: np.ndarray, most: float | None) -> list[tuple[float, str]]:
    """Each number and how strong its colour is; what is no number has none."""
    most = most or _strongest(vector)
    shares = np.abs(np.nan_to_num(vector.astype(float))) / most
    return [(float(value), f"{share:.0%}") for value, share in zip(vector, shares, strict=True)]
