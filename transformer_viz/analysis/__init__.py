"""Functions from a Trace to a small result: grades, losses, differences, sentences. They need numpy and no torch."""

from transformer_viz.addresses import AttentionAddress, HeadAddress
from transformer_viz.analysis.grading import Grades, HeadGrade, Measures, alignment
from transformer_viz.analysis.head_rows import HeadRows
from transformer_viz.analysis.loss import Losses, losses
from transformer_viz.analysis.mask_parts import MaskPart, forbidden_weight, mask_parts
from transformer_viz.analysis.measures import Measure
from transformer_viz.analysis.softmax import Softmax, head_softmax

__all__ = [
    "AttentionAddress",
    "Grades",
    "HeadAddress",
    "HeadGrade",
    "HeadRows",
    "Losses",
    "MaskPart",
    "Measure",
    "Measures",
    "Softmax",
    "alignment",
    "forbidden_weight",
    "head_softmax",
    "losses",
    "mask_parts",
]
