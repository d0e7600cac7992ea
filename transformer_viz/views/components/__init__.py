"""Components that several pages draw; the Python of each lies beside its JavaScript and CSS."""
