"""Explore: one text, written step by step."""
