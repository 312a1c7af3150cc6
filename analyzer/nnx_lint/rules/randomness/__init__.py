"""Checks of the rules NNX5xx: random streams, the keys drawn from them, and what maps do to both."""
