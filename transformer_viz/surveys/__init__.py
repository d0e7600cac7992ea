"""Surveys of many texts: what every head does, what is written, and how right and how sure it is.

`survey` runs one; `result`, `columns`, `sentences`, `comparison`, `figures` and `page` need no torch.
"""
