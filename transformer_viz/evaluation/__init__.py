"""How good a checkpoint is: exact match by source and by length, on texts that training never saw."""
