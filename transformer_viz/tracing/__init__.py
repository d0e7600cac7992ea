"""Functions that run a model and return Traces: `decode`, batches, the untrained baseline; `adapters/` for any module."""
