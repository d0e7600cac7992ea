"""Models that are not ours, as readers that decoding, search, edits and checks run like our own."""
