"""Checks of the rules NNX46x: differentiation, and the arguments of functions that are traced."""
