"""A run in a notebook's cell: a viewer that the next cell can ask, and tell."""
