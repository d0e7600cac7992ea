"""The figures of a survey, one a file; `tv.figures` has them by name."""
