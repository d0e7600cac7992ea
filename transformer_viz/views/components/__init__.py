"""What several pages draw: each component's Python beside its JavaScript and CSS."""
