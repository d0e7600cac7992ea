"""The results of the experiments as numbers and arrays; they need no torch."""
