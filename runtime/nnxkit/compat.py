"""Functions in graph mode with graph updates, whatever the settings are: ``nnx.compat.jit``, ``nnx.compat.split``, ....

Code that was written for these modes and must keep them uses the names of this module, and is spared the keywords.
"""

from functools import partial as _partial

from nnxkit import _graph, _module, _rng_scopes, _rngs, _transforms, _views, spmd

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
