"""The lines of Python, and of the command line, that make again what a page shows: plain text, made of values.

Nothing here runs anything. Whatever a person typed comes into a program as a quoted literal (`lines.literal`).
"""
