"""Names that people look for in NNX because other libraries have them, with what NNX has instead.

Each entry is a name that no version of NNX ever had. The value is a canonical name of the same signature or nearly so,
or a sentence that says what to do.
"""

from __future__ import annotations

from nnx_rules.signatures import SIGNATURES

_SAVED = "checkpoints are written by Orbax: `ocp.StandardCheckpointer().save(path, nnx.state(model))`"
_LOADED = "checkpoints are read by Orbax: `ocp.StandardCheckpointer().restore(path, nnx.state(model))`"
_STATE = "the State of a model is `nnx.state(model)`, that of its parameters `nnx.state(model, nnx.Param)`"
_COUNTED = "count them: `sum(leaf.size for leaf in jax.tree.leaves(nnx.state(model, nnx.Param)))`"
_OPTAX = "optimizers come from optax: `nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)`"
_LOSSES = "losses are in optax: `optax.softmax_cross_entropy_with_integer_labels`, `optax.squared_error`"
_TRAINED = "a step of training is your own: `nnx.value_and_grad(loss_fn)(model)`, `optimizer.update(model, grads)`"
_METRIC = "derive a class of your own from `nnx.Metric`, with `reset`, `update` and `compute`"
_METRICS = (
    *("AUC", "AUROC", "BinaryAccuracy", "CategoricalAccuracy", "ConfusionMatrix", "F1", "F1Score", "MeanAbsoluteError"),
    *("MeanSquaredError", "Perplexity", "Precision", "R2Score", "Recall", "RootMeanSquaredError"),
    *("SparseCategoricalAccuracy", "TopKAccuracy", "TopKCategoricalAccuracy"),
)
_UPDATED = "values go into a model by `nnx.update(model, state)`"

FOREIGN: dict[str, str] = {
    **dict.fromkeys(("save", "save_checkpoint", "save_model", "save_state", "save_weights"), _SAVED),
    **dict.fromkeys(("load", "load_checkpoint", "load_model", "load_state", "load_weights"), _LOADED),
    **dict.fromkeys(("restore", "restore_checkpoint"), _LOADED),
    **dict.fromkeys(("get_params", "get_state", "get_variables", "parameters", "params", "state_dict"), _STATE),
    **dict.fromkeys(("load_state_dict", "set_params", "set_state"), _UPDATED),
    **dict.fromkeys(("count_parameters", "count_params", "num_params", "param_count", "parameter_count"), _COUNTED),
    **dict.fromkeys(("Adam", "AdamW", "SGD", "adam", "adamw", "optim", "optimizers", "sgd"), _OPTAX),
    **dict.fromkeys(("loss", "losses", "nll_loss", "softmax_cross_entropy"), _LOSSES),
    **dict.fromkeys(("compile", "fit", "train_step"), _TRAINED),
    **dict.fromkeys(_METRICS, _METRIC),
    **dict.fromkeys(("Layer", "Model"), "nnx.Module"),
    "Tensor": "arrays are `jax.Array`",
    "TrainerState": "nnx.Optimizer",
    "activation": "functions are in `nnx` itself: `nnx.relu`",
    "activations": "functions are in `nnx` itself: `nnx.relu`",
    "einsum": "it is `jnp.einsum`, and the layer is `nnx.Einsum`",
    "initializer": "nnx.initializers",
    "layers": "layers are in `nnx` itself: `nnx.Linear`",
    "linen": "layers are in `nnx` itself, and those of Linen in `flax.linen`",
    "pad": "it is `jnp.pad`",
    "tree_map": "it is `jax.tree.map`",
    "Dense": "nnx.Linear",
    "DenseGeneral": "nnx.LinearGeneral",
    "ModuleList": "nnx.List",
    "ModuleDict": "nnx.Dict",
    "Parameter": "nnx.Param",
    "ParameterList": "nnx.List",
    "ParameterDict": "nnx.Dict",
    "Embedding": "nnx.Embed",
    "Buffer": "nnx.Variable",
    "Identity": "nnx.identity",
    "ReLU": "nnx.relu",
    "GELU": "nnx.gelu",
    "SiLU": "nnx.silu",
    "Tanh": "nnx.tanh",
    "Sigmoid": "nnx.sigmoid",
    "Softmax": "nnx.softmax",
    "Softplus": "nnx.softplus",
    "ELU": "nnx.elu",
    "LeakyReLU": "nnx.leaky_relu",
    "ReLU6": "nnx.relu6",
    "SELU": "nnx.selu",
    "GLU": "nnx.glu",
    "Hardswish": "nnx.hard_swish",
    "LogSoftmax": "nnx.log_softmax",
    "Conv1d": "nnx.Conv",
    "Conv2d": "nnx.Conv",
    "Conv3d": "nnx.Conv",
    "ConvTranspose1d": "nnx.ConvTranspose",
    "ConvTranspose2d": "nnx.ConvTranspose",
    "BatchNorm1d": "nnx.BatchNorm",
    "BatchNorm2d": "nnx.BatchNorm",
    "BatchNorm3d": "nnx.BatchNorm",
    "InstanceNorm2d": "nnx.InstanceNorm",
    "Conv2D": "nnx.Conv",
    "Conv2DTranspose": "nnx.ConvTranspose",
    "BatchNormalization": "nnx.BatchNorm",
    "LayerNormalization": "nnx.LayerNorm",
    "GroupNormalization": "nnx.GroupNorm",
    "Dropout2d": "`nnx.Dropout` leaves out whole channels with `broadcast_dims=(1, 2)`",
    "MaxPool": "nnx.max_pool",
    "MaxPool2d": "nnx.max_pool",
    "AvgPool": "nnx.avg_pool",
    "AvgPool2d": "nnx.avg_pool",
    "MaxPooling2D": "nnx.max_pool",
    "AveragePooling2D": "nnx.avg_pool",
    "MultiheadAttention": "nnx.MultiHeadAttention",
    "MultiHeadDotProductAttention": "nnx.MultiHeadAttention",
    "SelfAttention": "nnx.MultiHeadAttention",
    "LSTM": "nnx.RNN",
    "GRU": "nnx.RNN",
    "RngSequence": "nnx.Rngs",
    "Rng": "nnx.Rngs",
    "Mish": "it is `jax.nn.mish`",
    "Hardtanh": "nnx.hard_tanh",
    "Hardsigmoid": "nnx.hard_sigmoid",
    "LogSigmoid": "nnx.log_sigmoid",
    "CELU": "nnx.celu",
    "Swish": "nnx.swish",
    "Conv1D": "nnx.Conv",
    "Conv3D": "nnx.Conv",
    "MaxPool1d": "nnx.max_pool",
    "MaxPool3d": "nnx.max_pool",
    "AvgPool1d": "nnx.avg_pool",
    "AvgPool3d": "nnx.avg_pool",
    "AdaptiveAvgPool1d": "take the mean over the axis: `x.mean(axis=1)`",
    "AdaptiveAvgPool2d": "take the mean over the axes: `x.mean(axis=(1, 2))`",
    "GlobalAveragePooling2D": "take the mean over the axes: `x.mean(axis=(1, 2))`",
    "Upsample": "resize the array: `jax.image.resize`",
    "ZeroPad2d": "pad the array: `jnp.pad`",
    "CrossEntropyLoss": "losses are in optax: `optax.softmax_cross_entropy_with_integer_labels`",
    "cross_entropy": "losses are in optax: `optax.softmax_cross_entropy_with_integer_labels`",
    "BCEWithLogitsLoss": "losses are in optax: `optax.sigmoid_binary_cross_entropy`",
    "MSELoss": "losses are in optax: `optax.squared_error`",
    "mse_loss": "losses are in optax: `optax.squared_error`",
    "functional": "functions are in `nnx`, `jax.nn` and `jax.numpy`",
    "init": "initializers are in `nnx.initializers`, and are called for a new array",
    "normal": "it is `nnx.initializers.normal`",
    "zeros": "it is `nnx.initializers.zeros`, or `jnp.zeros` for an array",
    "ones": "it is `nnx.initializers.ones`, or `jnp.ones` for an array",
    "Partitioned": "sharding is metadata of a Variable: `nnx.Param(value, out_sharding=...)`",
    "LogicallyPartitioned": "sharding is metadata of a Variable: `nnx.Param(value, out_sharding=...)`",
    "with_logical_partitioning": "nnx.with_partitioning",
    "utils": "gradients are clipped by optax: `optax.clip_by_global_norm`",
    "Flatten": "reshape the array: `x.reshape(x.shape[0], -1)`",
    "compact": "make submodules in `__init__`",
    "setup": "make submodules in `__init__`",
    "filter_jit": "nnx.jit",
    "filter_grad": "nnx.grad",
    "filter_value_and_grad": "nnx.value_and_grad",
    "filter_vmap": "nnx.vmap",
    "partition": "a module is taken apart by `nnx.split(model, nnx.Param, ...)`",
    "combine": "a module is put together by `nnx.merge(graphdef, *states)`",
    "tree_at": "assign the attribute: modules can be changed",
    "apply_updates": "it is `optimizer.update(model, grads)`",
    "next_rng_key": "make keys with the streams that a module keeps: `self.rngs.noise()`",
    "get_parameter": "make parameters in `__init__`: `self.w = nnx.Param(...)`",
    "transform": "a module is called as it is, and `nnx.split` makes it a pure tree",
    "no_grad": "differentiate only what you want to: `nnx.grad`",
}
"""The names and what stands for them."""

SAME_USE: frozenset[str] = frozenset(
    {
        "DenseGeneral",
        "Embedding",
        "ModuleDict",
        "ModuleList",
        "Parameter",
        "ParameterDict",
        "ParameterList",
        "filter_grad",
        "filter_jit",
        "filter_value_and_grad",
    }
    | {"Identity", "ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "MultiheadAttention", "Rng", "BatchNorm1d", "BatchNorm2d"}
)
"""Those that a program can replace by the name alone, or nearly."""

ARGUMENTS: dict[str, str] = {
    "bias": "use_bias",
    "dim": "num_features",
    "dropout": "dropout_rate",
    "embed_dim": "in_features",
    "embedding_dim": "features",
    "eps": "epsilon",
    "features": "out_features",
    "hidden_size": "hidden_features",
    "in_channels": "in_features",
    "in_dim": "in_features",
    "in_size": "in_features",
    "initial_state": "initial_carry",
    "input_dim": "in_features",
    "input_size": "in_features",
    "key": "rngs",
    "n_heads": "num_heads",
    "normalized_shape": "num_features",
    "out_channels": "out_features",
    "out_dim": "out_features",
    "out_size": "out_features",
    "output_dim": "out_features",
    "p": "rate",
    "rank": "lora_rank",
    "rng": "rngs",
    "stride": "strides",
}
"""Arguments of layers in other libraries, with what layers of NNX call them."""

_MERGED = ("merge", "from_model_output", "from_output", "gather_from_model_output", "single_from_model_output")
"""Methods of immutable metrics, which are put together from those of the batches."""

ATTRIBUTES: dict[str, dict[str, str]] = {
    "nnx.Linear": {"weight": "kernel", "w": "kernel", "b": "bias", "units": "out_features"},
    "nnx.Conv": {"weight": "kernel", "in_channels": "in_features", "out_channels": "out_features"},
    "nnx.ConvTranspose": {"weight": "kernel", "in_channels": "in_features", "out_channels": "out_features"},
    "nnx.Embed": {
        "weight": "embedding",
        "kernel": "embedding",
        "embedding_dim": "features",
        "vocab_size": "num_embeddings",
    },
    "nnx.LayerNorm": {"weight": "scale", "gamma": "scale", "beta": "bias", "eps": "epsilon"},
    "nnx.RMSNorm": {"weight": "scale", "gamma": "scale", "eps": "epsilon"},
    "nnx.GroupNorm": {"weight": "scale", "gamma": "scale", "beta": "bias", "eps": "epsilon"},
    "nnx.BatchNorm": {
        "weight": "scale",
        "gamma": "scale",
        "beta": "bias",
        "running_mean": "mean",
        "running_var": "var",
        "moving_mean": "mean",
        "moving_variance": "var",
        "eps": "epsilon",
    },
    "nnx.Dropout": {"p": "rate"},
    "nnx.Optimizer": {
        "state": "opt_state",
        "zero_grad": "gradients are what `nnx.grad` returns: nothing has to be cleared",
        "param_groups": "an optax optimizer has no groups: `optax.multi_transform` treats parameters differently",
        "apply_gradients": "it is `optimizer.update(model, grads)`",
        "learning_rate": "it is part of the transformation: `optax.inject_hyperparams`, or a schedule",
        "lr": "it is part of the transformation: `optax.inject_hyperparams`, or a schedule",
        "params": "the parameters are in the model: `nnx.state(model, nnx.Param)`",
    },
    "nnx.Variable": {
        "data": "its array is `variable[...]`",
        "grad": "gradients are what `nnx.grad` returns: nothing keeps them",
    },
    "nnx.Sequential": {
        "append": "gather the layers in a list first: `nnx.Sequential(*layers)`",
        "add": "gather the layers in a list first: `nnx.Sequential(*layers)`",
    },
    "nnx.metrics.Metric": {
        "result": "it is `compute()`",
        "update_state": "it is `update(...)`",
        **dict.fromkeys(_MERGED, "a metric of NNX is changed in place: `metric.update(...)`"),
        "empty": "it is made empty, and `reset()` makes it so again",
    },
    "nnx.metrics.MultiMetric": {
        "result": "it is `compute()`",
        "update_state": "it is `update(...)`",
        **dict.fromkeys(_MERGED, "a metric of NNX is changed in place: `metric.update(...)`"),
        "empty": "it is made empty, and `reset()` makes it so again",
    },
}
"""Attributes of layers and optimizers in other libraries, by class of NNX, with what NNX has: a name or a sentence."""

HELD: dict[str, frozenset[str]] = {
    f"nnx.{name}": frozenset(held.split())
    for name, held in {
        "BatchNorm": "bias mean scale set_view var",
        "Conv": "bias kernel kernel_shape",
        "ConvTranspose": "bias kernel kernel_shape",
        "Dropout": "set_view",
        "Einsum": "bias kernel",
        "Embed": "attend embedding",
        "GRUCell": "dense_h dense_i initialize_carry num_feature_axes",
        "GroupNorm": "bias feature_axis scale",
        "InstanceNorm": "bias scale",
        "LSTMCell": "hf hg hi ho if_ ig ii initialize_carry io num_feature_axes",
        "LayerNorm": "bias scale",
        "Linear": "bias kernel",
        "LinearGeneral": "bias kernel",
        "LoRA": "lora_a lora_b",
        "LoRALinear": (
            "bias dot_general dtype kernel lora param_dtype precision preferred_element_type promote_dtype use_bias"
        ),
        "MultiHeadAttention": (
            "cache_index cached_key cached_value head_dim init_cache key key_ln out query query_ln set_view value"
        ),
        "OptimizedLSTMCell": "dense_h dense_i initialize_carry num_feature_axes",
        "Optimizer": "opt_state step update",
        "RMSNorm": "scale",
        "SimpleCell": "dense_h dense_i initialize_carry num_feature_axes",
    }.items()
}
"""Public attributes of layers, by class, besides those of all modules and those called like a parameter of the
constructor (:mod:`nnx_rules.signatures`), of which most are kept.
"""

_VARIABLE = """
    add_axis can_update copy copy_from create_value del_metadata eager_sharding from_metadata get_metadata
    get_raw_value get_value has_metadata has_ref hijax is_default is_hijax is_ref mesh mutable out_sharding
    raw_value ref remove_axis replace required_metadata set_metadata set_raw_value set_value shape sharding_names
    sharding_rules to_state type update_from_state value var_type addressable_data addressable_shards all any argmax
    argmin argpartition argsort astype at aval block_until_ready byteswap choose clip clone committed compress conj
    conjugate copy_to_host_async cumprod cumsum delete device device_buffer device_buffers devices diagonal dot
    dtype flat flatten format global_shards imag is_deleted is_fully_addressable is_fully_replicated is_ready item
    itemsize max mean min mT nbytes ndim nonzero on_device_size_in_bytes platform prod ptp ravel real repeat reshape
    round searchsorted sharding size sort squeeze std sum swapaxes T take to_device tobytes tolist trace traceback
    transpose unsafe_buffer_pointer unsafe_raw_buffer var view weak_type
"""

VARIABLE_ATTRIBUTES: frozenset[str] = frozenset(_VARIABLE.split())
"""Public attributes of a Variable, and those of the array in it, which it has too."""


def attributes_of(canonical: str) -> frozenset[str] | None:
    """The public attributes that instances of a layer may have, and its class does; ``None`` if they are not known."""
    signature, held = SIGNATURES.get(canonical), HELD.get(canonical)
    return None if signature is None or held is None else held.union(signature.positional, signature.keywords)


_KNOWN = """
    A Accuracy All Any ArrayRef Average BatchNorm BatchStat Bidirectional Cache Carry Conv ConvTranspose Data Dict
    DiffState Dropout EMA EMPTY Einsum Ema Embed Empty Everything FlatState ForkStates GRUCell GraphDef GraphNode
    GraphState GroupNorm HashableMapping Initializer InstanceNorm Intermediate Jit LSTMCell LayerNorm Linear
    LinearGeneral List LoRA LoRALinear LoRAParam M MergeContext Metric MetricState ModelAndOptimizer Module
    MultiHeadAttention MultiMetric MutableArray NodeStates Not Nothing Object OfType OptArray OptState OptVariable
    OptimizedLSTMCell Optimizer PARTITION_NAME PReLU Param PathContains Perturbation Pmap PureState Pytree RMSNorm
    RNN RNNCellBase RefMap Remat RngCount RngKey RngState RngStream Rngs RoPE Scan Sequence Sequential Sharded
    SimpleCell SpectralNorm SplitContext State StateAxes StateSharding Static TrainState TreeNode UpdateContext
    VarCollection Variable VariableMetadata VariableState Vmap WeightNorm Welford WithTag abstract_with_sharding
    array_ref as_abstract as_array_vars as_hijax_vars as_immutable_vars as_mutable_vars as_pure as_ref_vars average
    avg_pool bridge cached_partial call capture celu check_pytree checkify checkpoint checkpoints clone
    combine_masks compat cond config current_update_context custom_vjp data dataclass deprecations display
    dot_product_attention dot_product_attention_weights dot_product_attention_with_rope elu errors eval_mode
    eval_shape extract field filter_state filterlib find_duplicates flatlib flatten fori_loop fork fork_rngs freeze
    from_flat_state from_tree gelu get_abstract_model get_named_sharding get_node_impl get_partition_spec glu grad
    graph graph_utils graphdef graphlib hard_sigmoid hard_silu hard_swish hard_tanh has_data helpers identity ids
    initializers is_array_ref is_data is_data_type is_mutable_array iter_children iter_graph iter_module_children
    iter_modules jit jit_partial jvp leaky_relu log_sigmoid log_softmax logical_axis_rules logical_to_mesh
    logsumexp make_attention_mask make_causal_mask make_jaxpr map map_state max_pool merge merge_context
    merge_state metrics min_pool module mutable mutable_array nested_state nn object one_hot optimizer pmap pool
    pop prefix proxy_caller pure pytreelib recursive_map register_data_type register_variable_name
    register_variable_name_type_pair relu relu6 remat replace_by_pure_dict reprlib reseed restore_int_paths
    restore_rngs rnglib scan selu set_graph_mode set_graph_updates set_metadata set_mode set_mode_info shard_map
    sigmoid silu soft_sign softmax softplus split split_context split_rngs split_state spmd standardize state
    statelib static summary swish switch tabulate tanh to_arrays to_flat_state to_pure_dict to_refs to_tree tracers
    train_mode training transform_metadata transforms traversals unflatten unpack update update_context
    use_eager_sharding use_hijax use_mutable_arrays use_refs using_eager_sharding using_hijax using_mutable_arrays
    using_refs value_and_grad var_defaults variable_name_from_type variable_type_from_name variablelib variables
    vars_as view view_info visualization vjp vmap while_loop with_attributes with_metadata with_partitioning
    with_rngs with_sharding_constraint with_vars wrappers
"""

KNOWN: frozenset[str] = frozenset(_KNOWN.split())
"""The names of the top level that some version of NNX has or had, its submodules among them."""

MAPPING_METHODS = frozenset({"clear", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"})
"""Methods of ``nnx.Dict`` that are those of a dict."""
