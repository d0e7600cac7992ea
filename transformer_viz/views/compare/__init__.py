"""Compare: two runs side by side."""
