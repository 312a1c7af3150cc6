"""Two processes, joined by ``jax.distributed``, train as one. Run as a program, this file is one of these processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import nnxkit as nnx

PROCESSES = 2
DEVICES = 2
"""Devices of each process."""

PATIENCE = 300
"""Seconds after which a process that does not answer fails the test."""

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
Y = np.sin(3 * X).sum(axis=1, keepdims=True)


class Net(nnx.Module):
    """A layer whose parameters are split over all devices, and one whose parameters are on each of them."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Param(rngs.normal((4, 8)) / 2, out_sharding=(None, "data"))
        self.second = nnx.Param(rngs.normal((8, 1)) / 2, out_sharding=(None, None))
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x: Any) -> Any:
        self.calls[...] += 1
        return jnp.tanh(x @ self.first) @ self.second


def train_one_step(rows: slice) -> dict[str, Any]:
    """Train on all devices there are, of which this process feeds those that have these rows of the batch."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    with jax.set_mesh(mesh):
        model = nnx.jit(lambda: Net(nnx.Rngs(0)))()
        optimizer = nnx.Optimizer(model, optax.adam(1e-1), wrt=nnx.Param)

        @nnx.jit
        def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
            loss, grads = nnx.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(model)
            optimizer.update(model, grads)
            return loss

        sharding = NamedSharding(mesh, P("data"))
        x, y = (jax.make_array_from_process_local_data(sharding, values[rows]) for values in (X, Y))
        loss = step(model, optimizer, x, y)
        whole = nnx.jit(lambda m: (m.first * 1, m.second * 1, m.calls * 1), out_shardings=NamedSharding(mesh, P()))(
            model
        )
    return {
        "devices": jax.device_count(),
        "shard": model.first.get_raw_value().sharding.shard_shape((4, 8)),
        "loss": float(loss),
        "values": [np.asarray(value).tolist() for value in whole],
    }


def main(port: str, process: int) -> None:
    """Be one of the processes; prints what it finds."""
    jax.distributed.initialize(f"localhost:{port}", PROCESSES, process, initialization_timeout=PATIENCE)
    size = len(X) // PROCESSES
    print(json.dumps(train_one_step(slice(process * size, (process + 1) * size))))


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("localhost", 0))
        port: int = server.getsockname()[1]
        return port


def test_two_processes_train_as_one() -> None:
    port = free_port()
    flags = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}"}
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, str(port), str(number)],
            env=os.environ | flags,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    try:
        outputs = [process.communicate(timeout=PATIENCE) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], [errors for _, errors in outputs]
    first, second = (json.loads(text.splitlines()[-1]) for text, _ in outputs)  # Gloo prints, too
    assert first == second
    assert first["devices"] == PROCESSES * DEVICES
    assert first["shard"] == [4, 2]
    alone = train_one_step(slice(None))
    np.testing.assert_allclose(first["loss"], alone["loss"], rtol=1e-5)
    for found, expected in zip(first["values"], alone["values"], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
