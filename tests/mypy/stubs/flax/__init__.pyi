from flax import nnx as nnx
