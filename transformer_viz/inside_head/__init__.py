"""The inside of one head at one row: records every number, explains how each is computed, and makes a page of them.

The recorded numbers are a `trace.inside.Inside`, which a Trace and its file can hold.
"""
