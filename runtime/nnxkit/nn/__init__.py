"""Layers. The public names are those of ``nnxkit``."""
