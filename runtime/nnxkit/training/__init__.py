"""Training: optimizers. The public names are those of ``nnxkit``."""
