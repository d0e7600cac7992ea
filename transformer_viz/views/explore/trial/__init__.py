"""The questions of On trial, in the tab Heads, each with what it computes, shows and says."""
