"""Survey: what every head does over many texts."""
