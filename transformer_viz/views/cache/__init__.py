"""What the server keeps between runs of a page: loaded checkpoints, finished runs, and the limits on both."""
