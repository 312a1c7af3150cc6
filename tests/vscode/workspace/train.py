import jax
from flax import nnx
from model import Net

net = Net(rngs=nnx.Rngs(0))
graphdef, params, rest = nnx.split(net, nnx.Param, ...)


@jax.jit
def step(x):
    net.calls[...] += 1
    return net(x)


@nnx.jit
def loss(x):
    return net(x).sum()


head = nnx.state(net, 0)  # nnx: ignore[invalid-filter]
