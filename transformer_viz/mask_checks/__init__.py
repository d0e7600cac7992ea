"""Mask checks: the leak certificate, its explanation, and the effect of an edit or mistake on a model's answers."""
