"""The state of the pages: the widgets that the link holds, the focus, and the display options."""
