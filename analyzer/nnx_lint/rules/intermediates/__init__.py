"""Checks of the rules NNX64x and NNX601: what modules sow and perturb, and what captures it."""
