"""Runs, grades, guesses and comparisons in sentences. Needs numpy and no torch."""
