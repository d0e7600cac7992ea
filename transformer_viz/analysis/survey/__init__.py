"""What a survey of many texts found: statistics of every head and of what was written. Numpy only; no model is needed."""
