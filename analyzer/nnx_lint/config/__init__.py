"""Configuration: the options, where they are read from, and what holds for a file."""
