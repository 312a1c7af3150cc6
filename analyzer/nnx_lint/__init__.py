"""The static side of nnxkit: finds the mistakes of NNX code from its source, without running it or importing jax."""
