"""Search: a beam search as a tree."""
