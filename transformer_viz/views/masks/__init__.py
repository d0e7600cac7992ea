"""Masks: every mask of a batch, changed and proven."""
