"""Train: a training in a process of its own."""
