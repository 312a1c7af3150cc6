"""Functions in graph mode with graph updates, whatever the settings are: ``nnx.compat.jit``, ``nnx.compat.split``, ....

Code that was written for these modes and must keep them uses the names of this module, and is spared the keywords.
"""

from functools import partial as _partial
from typing import TYPE_CHECKING

from nnxkit import _graph, _module, _rng_scopes, _rngs, _transforms, _views, spmd

if TYPE_CHECKING:  # Their types are those of the functions.
    from nnxkit._graph import clone as clone
    from nnxkit._graph import flatten as flatten
    from nnxkit._graph import graphdef as graphdef
    from nnxkit._graph import iter_children as iter_children
    from nnxkit._graph import iter_graph as iter_graph
    from nnxkit._graph import recursive_map as recursive_map
    from nnxkit._graph import split as split
    from nnxkit._graph import state as state
    from nnxkit._module import iter_modules as iter_modules
    from nnxkit._rng_scopes import fork_rngs as fork_rngs
    from nnxkit._rng_scopes import split_rngs as split_rngs
    from nnxkit._rngs import reseed as reseed
    from nnxkit._transforms import cached_partial as cached_partial
    from nnxkit._transforms import checkify as checkify
    from nnxkit._transforms import cond as cond
    from nnxkit._transforms import custom_vjp as custom_vjp
    from nnxkit._transforms import eval_shape as eval_shape
    from nnxkit._transforms import fori_loop as fori_loop
    from nnxkit._transforms import grad as grad
    from nnxkit._transforms import jit as jit
    from nnxkit._transforms import jvp as jvp
    from nnxkit._transforms import pmap as pmap
    from nnxkit._transforms import remat as remat
    from nnxkit._transforms import scan as scan
    from nnxkit._transforms import shard_map as shard_map
    from nnxkit._transforms import switch as switch
    from nnxkit._transforms import value_and_grad as value_and_grad
    from nnxkit._transforms import vjp as vjp
    from nnxkit._transforms import vmap as vmap
    from nnxkit._transforms import while_loop as while_loop
    from nnxkit._views import view as view
    from nnxkit._views import view_info as view_info
    from nnxkit.spmd import get_abstract_model as get_abstract_model
else:
    clone = _partial(_graph.clone, graph=True)
    flatten = _partial(_graph.flatten, graph=True)
    get_abstract_model = _partial(spmd.get_abstract_model, graph=True)
    graphdef = _partial(_graph.graphdef, graph=True)
    iter_children = _partial(_graph.iter_children, graph=True)
    iter_graph = _partial(_graph.iter_graph, graph=True)
    iter_modules = _partial(_module.iter_modules, graph=True)
    recursive_map = _partial(_graph.recursive_map, graph=True)
    reseed = _partial(_rngs.reseed, graph=True)
    split = _partial(_graph.split, graph=True)
    state = _partial(_graph.state, graph=True)
    view = _partial(_views.view, graph=True)
    view_info = _partial(_views.view_info, graph=True)

    cached_partial = _partial(_transforms.cached_partial, graph=True, graph_updates=True)
    checkify = _partial(_transforms.checkify, graph=True, graph_updates=True)
    cond = _partial(_transforms.cond, graph=True, graph_updates=True)
    custom_vjp = _partial(_transforms.custom_vjp, graph=True, graph_updates=True)
    eval_shape = _partial(_transforms.eval_shape, graph=True, graph_updates=True)
    fori_loop = _partial(_transforms.fori_loop, graph=True, graph_updates=True)
    fork_rngs = _partial(_rng_scopes.fork_rngs, graph=True, graph_updates=True)
    grad = _partial(_transforms.grad, graph=True, graph_updates=True)
    jit = _partial(_transforms.jit, graph=True, graph_updates=True)
    jvp = _partial(_transforms.jvp, graph=True, graph_updates=True)
    pmap = _partial(_transforms.pmap, graph=True, graph_updates=True)
    remat = _partial(_transforms.remat, graph=True, graph_updates=True)
    scan = _partial(_transforms.scan, graph=True, graph_updates=True)
    shard_map = _partial(_transforms.shard_map, graph=True, graph_updates=True)
    split_rngs = _partial(_rng_scopes.split_rngs, graph=True, graph_updates=True)
    switch = _partial(_transforms.switch, graph=True, graph_updates=True)
    value_and_grad = _partial(_transforms.value_and_grad, graph=True, graph_updates=True)
    vjp = _partial(_transforms.vjp, graph=True, graph_updates=True)
    vmap = _partial(_transforms.vmap, graph=True, graph_updates=True)
    while_loop = _partial(_transforms.while_loop, graph=True, graph_updates=True)
