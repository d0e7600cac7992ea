"""The figures of a training, one a file; `tv.figures` has them by name."""
