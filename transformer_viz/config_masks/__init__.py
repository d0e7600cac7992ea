"""The masks of a Hugging Face model from its configuration alone: no weights, no network."""
