"""What the interpreter knows of values: results of library functions, containers, branches, loops, conditions."""

import pytest

from abstract import prints

PROGRAMS = {
    "results of jax.numpy": """
        a = jnp.zeros((2, 3))
        print(a)  # array
        print(jnp.add(a, 1))  # array
        print(jnp.add.reduce(a))  # array
        print(jnp.shape(a))  # shape
        print(jnp.split(a, 2))  # list(array, array)
        print(jnp.split(a, [1]))  # list(array, array)
        print(jnp.linalg.eigh(a))  # tuple(array, array)
        print(jnp.linalg.svd(a, full_matrices=False))  # tuple(array, array, array)
        print(jnp.linalg.svd(a, compute_uv=False))  # array
        print(jnp.where(a > 0))  # tuple[array]
        print(jnp.where(a > 0, a, 0))  # array
        print(jnp.unique(a))  # ?
        print(jnp.float32(1))  # array
        print(jnp.no_such_function(a))  # ?
        """,
    "results of other modules of jax": """
        key = jax.random.key(0)
        a = jax.random.normal(key, (2,))
        print(jax.random.split(key))  # array
        print(jax.nn.relu(a))  # array
        print(nnx.relu(a))  # array
        print(jax.nn.logsumexp(a, return_sign=True))  # tuple(array, array)
        print(jax.lax.top_k(a, 2))  # tuple(array, array)
        print(jax.lax.stop_gradient(a))  # array
        print(jax.lax.stop_gradient([a, 1]))  # list(array, 1)
        print(jax.device_count())  # plain
        print(nnx.initializers.zeros_init())  # function
        print(nnx.initializers.lecun_normal()(key, (2, 3)))  # array
        print(jax.nn.initializers.zeros(key, (2, 3)))  # array
        """,
    "an overload is chosen only where it is certain": """
        def f(a: jax.Array, flag, *rest):
            print(jax.nn.logsumexp(a, return_sign=flag))  # ?
            print(jnp.where(a, *rest))  # ?
            print(jnp.atleast_1d(a))  # array
            print(jnp.atleast_1d(a, a))  # list[array]
        """,
    "members of arrays": """
        a = jnp.zeros((2, 3))
        print(a.T)  # array
        print(a.sum())  # array
        print(a.at[0].set(1))  # array
        print(a.at[0].get())  # array
        print(a.shape)  # tuple(2, 3)
        print(a.shape[0])  # 2
        print(a.item())  # number
        print(a.nonzero())  # tuple[array]
        print(a.tolist())  # ?
        print(nnx.Param(a).T)  # array
        """,
    "elements of numpy arrays may be scalars": """
        a = np.linspace(0, 1, 12)
        print(a)  # numpy array
        print(a * 2)  # numpy array
        print(a[0])  # ?
        print(a[2:])  # numpy array
        print(a.reshape(3, 4))  # numpy array
        print(a.mean())  # ?
        print([x for x in a])  # list[?]
        print(a * jnp.ones(12))  # array
        """,
    "what a loop leaves": """
        a = jnp.zeros(3)
        b = None
        n = 0
        for i in range(3):
            print(a)  # array
            print(b)  # ?
            a = jnp.dot(a, a)
            b = a
            n = "text"
        print(a)  # array
        print(b)  # None | array
        print(n)  # 'text' | 0
        """,
    "a loop that changes the kind": """
        a = jnp.zeros(3)
        while True:
            a = (a, a)
        print(a)  # ?
        """,
    "none": """
        def f(a: jax.Array | None = None, b: nnx.Linear | None = None):
            if a is None:
                print(a)  # None
            else:
                print(a)  # array
            if not b:
                return
            print(b)  # Linear
            print(b.bias)  # ?
            while (c := b.kernel) is not None:
                print(c)  # Param
        """,
    "isinstance": """
        def f(a: jax.Array | nnx.Linear | nnx.Conv | list[int] | None):
            if isinstance(a, (nnx.Linear, nnx.Conv)):
                print(a)  # Conv | Linear
            elif isinstance(a, list):
                print(a)  # list[plain]
            elif a is not None and not isinstance(a, jax.Array):
                print(a)  # ?
        def g(a):
            if isinstance(a, nnx.Linear):
                print(a)  # ?
        class Net(nnx.Module):
            pass
        def of_linen(a):
            if isinstance(a, flax.linen.Module):
                print(a)  # ?
            elif isinstance(a, collections.abc.Callable):
                print(a)  # ? and Net
        import collections.abc
        import flax
        of_linen(Net())
        """,
    "patterns": """
        def f(a: jax.Array | nnx.Linear | None, pair):
            match a:
                case None:
                    print(a)  # None
                case nnx.Linear(kernel=kernel) as layer:
                    print(a)  # Linear
                    print(layer)  # Linear
                    print(kernel)  # Param
                case other if other is not None:
                    print(other)  # Linear | array
            match (1, a):
                case (first, second):
                    print(first)  # 1
                    print(second)  # Linear | None | array
            match pair:
                case {"x": x, **rest}:
                    print(rest)  # ?
        """,
    "context managers": """
        @contextlib.contextmanager
        def opened(layer: nnx.Linear):
            yield layer
        class Timer:
            def __enter__(self):
                self.started = 1
                return self
            def __exit__(self, *error):
                pass
        def f(layer: nnx.Linear):
            with opened(layer) as a, Timer() as b, open("f") as c:
                print(a)  # Linear
                print(b)  # Timer
                print(c)  # ?
        """,
    "a union is called with doubt": """
        a = nnx.Linear(2, 3, rngs=nnx.Rngs(0)) if jax.device_count() else nnx.BatchNorm(3, rngs=nnx.Rngs(0))
        print(a)  # BatchNorm | Linear
        print(a(jnp.ones(2)))  # array
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    found, expected = prints(PROGRAMS[name])
    assert found == expected
