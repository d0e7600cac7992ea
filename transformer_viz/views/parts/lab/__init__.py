"""The parts of the mask laboratory: what is typed, and one file a tab."""
