"""Checks of the rules NNX85x, NNX860 and NNX861: the containers of NNX, and functions that walk through objects."""
