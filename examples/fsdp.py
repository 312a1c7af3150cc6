"""Fully sharded training on eight devices: each holds an eighth of the parameters and of the optimizer's moments.

The layers name the axis of the mesh that each of their parameters is cut along. Under the mesh every parameter is put
into its place as it is made, inside one compiled function, so that no device ever holds the whole model. XLA inserts
what gathers the weights and scatters the gradients. The eight devices are pieces of the CPU here; on accelerators
nothing else changes. Source: Rajbhandari et al., "ZeRO", 2019; Xu et al., "GSPMD", 2021.
"""

import jax
import jax.numpy as jnp
import optax
from digits import load
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import nnxkit as nnx

DEVICES, EPOCHS, BATCH, WIDTH = 8, 8, 128, 512


class Net(nnx.Module):
    """Images, float32[batch, 64], to logits, float32[batch, 10]; every parameter is cut into eight."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        kernel = nnx.with_partitioning(nnx.initializers.he_normal(), ("devices", None))
        bias = nnx.with_partitioning(nnx.initializers.zeros_init(), ("devices",))

        def linear(inputs: int, outputs: int) -> nnx.Linear:
            return nnx.Linear(inputs, outputs, kernel_init=kernel, bias_init=bias, rngs=rngs)

        self.layers = nnx.List([linear(64, WIDTH), linear(WIDTH, WIDTH), linear(WIDTH, WIDTH)])
        self.out = nnx.Linear(WIDTH, 10, kernel_init=kernel, rngs=rngs)  # ten biases cannot be cut into eight

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer in self.layers:
            x = nnx.relu(layer(x))
        return self.out(x)


def held(tree: object) -> list[int]:
    """How many bytes of a tree each device holds."""
    total = [0] * DEVICES
    for leaf in jax.tree.leaves(nnx.state(tree)):
        for shard in leaf.addressable_shards:
            total[shard.device.id] += shard.data.nbytes
    return total


def main() -> None:
    """Train, and print what each device holds, and the accuracy on images that were not trained on."""
    jax.config.update("jax_num_cpu_devices", DEVICES)
    mesh = jax.make_mesh((DEVICES,), ("devices",), axis_types=(jax.sharding.AxisType.Auto,))
    train, test = load()

    @nnx.jit
    def create() -> tuple[Net, nnx.Optimizer[Net]]:
        model = Net(rngs=nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    with jax.set_mesh(mesh):
        model, optimizer = create()

        @nnx.jit
        def train_step(images: jax.Array, labels: jax.Array) -> jax.Array:
            def loss_of(model: Net) -> jax.Array:
                return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

            loss, gradients = nnx.value_and_grad(loss_of)(model)
            optimizer.update(model, gradients)
            return loss

        cut = NamedSharding(mesh, P("devices"))
        steps_per_epoch = len(train.labels) // BATCH
        for number, batch in enumerate(train.batches(BATCH, EPOCHS), start=1):
            loss = train_step(*jax.device_put((batch.images.reshape(BATCH, 64), batch.labels), cut))
            loss.block_until_ready()  # steps in flight at once starve each other where devices share few cores
            if number % (2 * steps_per_epoch) == 0:
                print(f"epoch {number // steps_per_epoch}   loss {loss:.4f}")
        accuracy = (nnx.jit(model)(jnp.asarray(test.images.reshape(-1, 64))).argmax(-1) == test.labels).mean()

    whole = sum(leaf.nbytes for leaf in jax.tree.leaves(nnx.state((model, optimizer))))
    most = max(held((model, optimizer)))
    print(f"model and moments: {whole / 1e6:.2f} MB; on each device at most {most / 1e6:.2f} MB ({most / whole:.1%})")
    print(f"accuracy on {len(test.labels)} new images: {accuracy:.1%}")


if __name__ == "__main__":
    main()
