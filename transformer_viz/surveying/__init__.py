"""A model over a corpus: blocks of lines, each run alone, and merged in order whatever ran them."""
