"""One head and one row of a run looked into: the run that records every number, how each comes about, and a page of them.

What is recorded is `trace.inside.Inside`, since a Trace holds it and its file too.
"""
