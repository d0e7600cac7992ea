"""Keeps loaded checkpoints and finished runs between runs of a page, and limits both."""
