"""What is on the screen, and how a link says it: every control of every page, its check and its default."""
