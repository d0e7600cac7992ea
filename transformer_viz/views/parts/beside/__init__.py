"""The parts of the page Compare: two sides, what each of them runs, and what differs."""
