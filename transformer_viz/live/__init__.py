"""One HTML file with a model in it: whoever opens it types a text and sees every head of every step, without a network.

The folder `engine` is the model in JavaScript; `model_data` writes a checkpoint as the engine reads it.
"""
