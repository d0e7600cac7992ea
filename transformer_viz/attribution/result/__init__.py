"""What the experiments find, as numbers and arrays: no torch."""
