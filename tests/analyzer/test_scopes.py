"""Scopes of traces: which code runs under which transform, through decorators of the project, and in which modes."""

import pytest

from marked import expect, program

WRAPPERS = """
import time

counter = nnx.Variable(jnp.array(0))

def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        started = time.time()
        result = function(*args, **kwargs)
        print(time.time() - started)
        return result
    return wrapper

def retry(times):
    def decorator(function):
        def wrapper(*args, **kwargs):
            for _ in range(times):
                return function(*args, **kwargs)
        return wrapper
    return decorator

def unchanged(function):
    registry = {}
    registry[function.__name__] = function
    return function

def compiled(function, **options):
    return jax.jit(function, **options)

def sometimes(function):
    def wrapper(*args):
        if args[0].ndim:
            return function(*args)
        return args[0]
    return wrapper

class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.norm = nnx.BatchNorm(3, rngs=rngs)

    @timed
    def __call__(self, x):
        return self.norm(x)

    @jax.named_scope("forward")
    @unchanged
    def forward(self, x):
        return self.norm(x)

net = Net(nnx.Rngs(0))
"""

THROUGH_DECORATORS = {
    "a wrapper under a transform": """
        @jax.jit
        @timed
        def f(x):
            counter.value += 1  # NNX201
            return x
        """,
    "a transform under a wrapper": """
        @timed
        @nnx.jit
        def f(x):
            counter.value += 1  # NNX201
            return x
        """,
    "wrappers in wrappers, with arguments": """
        @jax.jit
        @retry(3)
        @timed
        @unchanged
        def f(x, *, k=1):
            counter.value += k  # NNX201
            return x
        """,
    "a decorated function that another one calls": """
        @timed
        def helper(x):
            counter.value += 1
        @jax.jit
        @timed
        def f(x):
            helper(x)  # NNX201
            return x
        """,
    "a decorator of the project that compiles": """
        @functools.partial(compiled, static_argnums=0)
        def f(n, x):
            counter.value += n  # NNX201
            return x
        """,
    "a decorated method": """
        @jax.jit
        def f(x):
            return net(x)  # NNX202
        """,
    "a transparent decorator of a library": """
        @jax.jit
        def g(x):
            y = net.forward(x)  # NNX202
            return y
        """,
    "a wrapper that may not call": """
        @jax.jit
        @sometimes
        def f(x):
            counter.value += 1  # NNX201
            return x
        """,
    "a wrapper around what it gets": """
        @nnx.jit
        @timed
        def f(net, x):
            return net(x)
        """,
    "a decorator that cannot be read": """
        from somewhere import decorator
        @jax.jit
        @decorator
        def f(x):
            counter.value += 1
            return x
        """,
}


@pytest.mark.parametrize("name", THROUGH_DECORATORS)
def test_decorators_of_the_project(tmp_path, name):
    expect(tmp_path, {"program.py": program(WRAPPERS)["program.py"] + program(THROUGH_DECORATORS[name])["program.py"]})


MODES = """
class Net(nnx.Module):
    def __init__(self):
        self.kernel = nnx.Param(jnp.ones(2))

net = Net()

def forward(net, x):
    return net.kernel[...].sum() + x
"""

IN_MODES = {
    "the default": "@jax.jit\ndef f(x):\n    return nnx.jit(forward)(net, x)  # NNX205",
    "tree mode": "@jax.jit\ndef f(x):\n    return nnx.jit(forward, graph=False)(net, x)",
    "no updates": "@jax.jit\ndef f(x):\n    return nnx.cond(True, forward, forward, net, x, graph_updates=False)",
    "the default by name": """
        @jax.jit
        def f(x):
            return nnx.jit(forward, graph=True, graph_updates=None)(net, x)  # NNX205
        """,
    "not known": "@jax.jit\ndef f(x, mode):\n    return nnx.jit(forward, graph=mode)(net, x)",
    "a block": "@jax.jit\ndef f(x):\n    with nnx.set_graph_mode(False):\n        return nnx.jit(forward)(net, x)",
    "after a block": """
        @jax.jit
        def f(x):
            with nnx.set_graph_mode(False):
                pass
            return nnx.jit(forward)(net, x)  # NNX205
        """,
    "applied in a block, called outside": """
        with nnx.set_graph_updates(False):
            inner = nnx.jit(forward)
        @jax.jit
        def f(x):
            return inner(net, x)
        """,
    "applied outside, called in a block": """
        inner = nnx.jit(forward)
        @jax.jit
        def f(x):
            with nnx.set_graph_updates(False):
                return inner(net, x)  # NNX205
        """,
    "compat in a block": """
        @jax.jit
        def f(x):
            with nnx.set_graph_mode(False):
                return nnx.compat.grad(lambda net: forward(net, x))(net)  # NNX205
        """,
    "a statement": """
        def main():
            nnx.set_graph_mode(False)
        @jax.jit
        def f(x):
            return nnx.jit(forward)(net, x)
        """,
    "returned in any mode": "@functools.partial(nnx.jit, graph=False)\ndef f(x):\n    return net  # NNX215",
}


@pytest.mark.parametrize("name", IN_MODES)
def test_modes(tmp_path, name):
    expect(tmp_path, {"program.py": program(MODES)["program.py"] + program(IN_MODES[name])["program.py"]})


def test_a_context_manager_that_switches_modes_there_and_back(tmp_path):
    text = """
        import contextlib
        net = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
        other = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
        @contextlib.contextmanager
        def evaluating(net):
            net.eval()
            try:
                yield net
            finally:
                net.train()
        @jax.jit
        def f(x):
            return other(x)  # NNX202
        with evaluating(net):
            jax.jit(lambda x: net(x))(jnp.ones(3))
        """
    expect(tmp_path, program(text))


def test_one_of_two_layers_is_called(tmp_path):
    text = """
        class Net(nnx.Module):
            def __init__(self, batched, rngs: nnx.Rngs):
                self.norm = nnx.BatchNorm(3, rngs=rngs) if batched else nnx.LayerNorm(3, rngs=rngs)
                self.drop = nnx.Dropout(0.1, rngs=rngs) if batched else nnx.Dropout(0.5, rngs=rngs)
        net = Net(False, nnx.Rngs(0))
        @jax.jit
        def f(x):
            return net.norm(x)
        @jax.jit
        def g(x):
            return net.drop(x)  # NNX202
        """
    expect(tmp_path, program(text))


def test_a_decorated_constructor(tmp_path):
    text = """
        def keeping(init):
            @functools.wraps(init)
            def wrapper(self, *args, **kwargs):
                self.given = args
                init(self, *args, **kwargs)
            return wrapper
        class Net(nnx.Module):
            @keeping
            def __init__(self, part: nnx.Module, rngs: nnx.Rngs):
                self.part = part
                self.norm = nnx.BatchNorm(3, rngs=rngs)
        net = Net(nnx.BatchNorm(3, rngs=nnx.Rngs(0)), nnx.Rngs(0))
        @jax.jit
        def f(x):
            net.part(x)  # NNX202
            return net.norm(x)  # NNX202
        """
    expect(tmp_path, program(text))
