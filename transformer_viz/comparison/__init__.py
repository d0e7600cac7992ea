"""Two runs side by side: aligned by tokens or words, compared number by number, and as files. Needs numpy and no torch."""
