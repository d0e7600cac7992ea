"""Does anything leak? The certificate, what it means, and what an edited mask does to a model's answers."""
