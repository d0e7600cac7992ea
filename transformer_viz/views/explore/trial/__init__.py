"""The questions of the tab On trial, each with what it computes, shows and says."""
