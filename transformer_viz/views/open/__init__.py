"""Open: a trace from a file."""
