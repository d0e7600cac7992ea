"""A Trace in, a small result out: grades, losses, differences, sentences. Numpy only; nothing here needs torch."""

from transformer_viz.analysis.grading import Grades, HeadGrade, Measures, alignment

__all__ = ["Grades", "HeadGrade", "Measures", "alignment"]
