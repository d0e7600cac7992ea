"""The page Over many texts: a survey of every head of a model."""
