"""Firefox's translators: the binary files of Marian that Mozilla publishes, as a reader. Nothing of a folder runs."""
