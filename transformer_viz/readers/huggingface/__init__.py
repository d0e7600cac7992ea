"""Models of Hugging Face's transformers, decoded live."""
