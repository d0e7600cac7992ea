"""What a survey measures of every head and text: each measure of `analysis.measures`, and the bins that count texts."""

from typing import Any

from transformer_viz.analysis.measures import OF_MANY
from transformer_viz.errors import OptionError, join_names
from transformer_viz.surveys.result import SurveyedStatistic

SHARES = tuple(i / 20 for i in range(21))
SIZES = (*(i / 4 for i in range(33)), *(float(n * 2**i) for i in range(2, 8) for n in (3, 4)))
"""Of nats and positions: by a quarter up to 8, then 12, 16, 24, 32 … 512"""
STATISTICS = tuple(
    SurveyedStatistic(name=name, title=of.title, help=of.help, is_share=of.is_share, edges=SHARES if of.is_share else SIZES)
    for name, of in OF_MANY.items()
)
NAMES = tuple(statistic.name for statistic in STATISTICS)


def check_by(name: str | None) -> None:
    """Raises an OptionError unless texts can be chosen by a statistic of this name; None leaves it to the head."""
    if name is not None and name not in NAMES:
        raise OptionError(f"by={name!r} is not possible; choose one of {join_names(NAMES)}")


def preferred(by: str | None) -> tuple[str, ...]:
    """The statistics by which a head's texts are chosen: the first of these that some text has."""
    return tuple(dict.fromkeys((*([] if by is None else [by]), "mass", "entropy_share")))


def bleu_metric() -> Any:
    """BLEU of sacrebleu (Post 2018), of which surveys keep the counts; None where it is not installed."""
    try:
        from sacrebleu.metrics import BLEU
    except ModuleNotFoundError:
        return None
    # With effective order it does not warn of a sentence's score, which nobody takes.
    return BLEU(effective_order=True)
