"""Checks of the rules about modes: NNX801, NNX807, NNX808, NNX84x and NNX862."""
