"""Checks of the rules NNX83x and NNX863: how modules are made and called."""
