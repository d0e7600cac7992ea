"""A model's run into a Trace: decoding, padded batches, teacher forcing, replays, edits; `adapters/` for others' models."""
