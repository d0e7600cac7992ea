"""Over many texts: what every head does over many texts."""
