"""Replay: one text along a training."""
