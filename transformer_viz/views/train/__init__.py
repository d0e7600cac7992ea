"""The page Train: its form, the progress of a training, and the replay of one."""
