"""The quality of a checkpoint: exact match by source and by length, on texts that training never saw."""
