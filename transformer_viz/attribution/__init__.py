"""The importance of each key and each head for what was written: measures (`methods/`) and experiments."""
