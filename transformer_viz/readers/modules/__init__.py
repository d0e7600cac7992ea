"""Any PyTorch module as a loaded model: its attention is seen at the level of torch's operators."""
