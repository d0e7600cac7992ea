"""Learn: the list of lessons."""
