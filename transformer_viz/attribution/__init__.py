"""How much each key and each head matters for what was written: measures (`methods/`) and experiments."""
