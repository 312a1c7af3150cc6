"""How the classes of the library are constructed: the parameters of each, in order.

Written as a signature is: ``!`` marks a parameter that has no default, ``*`` what follows it is given by keyword only,
``**`` that any other keyword is taken. flax (0.12) and nnxkit agree on these; older versions take fewer keywords, so a
name that is missing here is wrong everywhere, while one that is here may be newer than the version in use.
"""

from __future__ import annotations

from nnx_rules.records import Record


class Signature(Record):
    """The parameters of a constructor.

    Attributes:
        positional: those that can be given by position, in order.
        keywords: those that can be given by keyword only.
        required: those without a default.
        variadic: whether it takes any number of positional arguments.
        open: whether it takes any keyword.
    """

    positional: tuple[str, ...]
    keywords: tuple[str, ...]
    required: frozenset[str]
    variadic: bool = False
    open: bool = False


def _read(text: str) -> Signature:
    positional: list[str] = []
    keywords: list[str] = []
    required: set[str] = set()
    variadic = open_ = False
    names = positional
    for word in text.split():
        if word == "*":
            names = keywords
        elif word == "**":
            open_ = True
        elif word == "*args":
            variadic = True
        else:
            name = word.removesuffix("!")
            names.append(name)
            if name != word:
                required.add(name)
    return Signature(tuple(positional), tuple(keywords), frozenset(required), variadic, open_)


_TEXTS = {
    "nnx.BatchNorm": (
        "num_features! * use_running_average axis momentum epsilon dtype param_dtype use_bias use_scale "
        "bias_init scale_init axis_name axis_index_groups use_fast_variance promote_dtype rngs! bias_metadata "
        "scale_metadata"
    ),
    "nnx.Bidirectional": "forward_rnn! backward_rnn! * merge_fn time_major return_carry rngs",
    "nnx.Conv": (
        "in_features! out_features! kernel_size! strides * padding input_dilation kernel_dilation "
        "feature_group_count use_bias mask dtype param_dtype precision kernel_init bias_init "
        "conv_general_dilated promote_dtype preferred_element_type rngs! kernel_metadata bias_metadata"
    ),
    "nnx.ConvTranspose": (
        "in_features! out_features! kernel_size! strides * padding kernel_dilation use_bias mask dtype "
        "param_dtype precision kernel_init bias_init transpose_kernel promote_dtype preferred_element_type "
        "rngs! kernel_metadata bias_metadata"
    ),
    "nnx.Dict": "*args **",
    "nnx.Dropout": "rate! * broadcast_dims deterministic rng_collection rngs",
    "nnx.EMA": "params! decay! * only graph",
    "nnx.Einsum": (
        "einsum_str! kernel_shape! bias_shape * dtype param_dtype precision kernel_init bias_init "
        "promote_dtype einsum_op preferred_element_type rngs! kernel_metadata bias_metadata"
    ),
    "nnx.Embed": (
        "num_embeddings! features! * dtype param_dtype embedding_init promote_dtype rngs! embedding_metadata"
    ),
    "nnx.GRUCell": (
        "in_features! hidden_features! * gate_fn activation_fn kernel_init recurrent_kernel_init bias_init "
        "dtype param_dtype carry_init promote_dtype keep_rngs rngs! kernel_metadata recurrent_kernel_metadata "
        "bias_metadata"
    ),
    "nnx.GroupNorm": (
        "num_features! num_groups group_size * epsilon dtype param_dtype use_bias use_scale bias_init "
        "scale_init reduction_axes axis_name axis_index_groups use_fast_variance promote_dtype rngs! "
        "bias_metadata scale_metadata"
    ),
    "nnx.InstanceNorm": (
        "num_features! * epsilon dtype param_dtype use_bias use_scale bias_init scale_init feature_axes "
        "axis_name axis_index_groups use_fast_variance promote_dtype rngs! bias_metadata scale_metadata"
    ),
    "nnx.LSTMCell": (
        "in_features! hidden_features! * gate_fn activation_fn kernel_init recurrent_kernel_init bias_init "
        "dtype param_dtype carry_init promote_dtype keep_rngs rngs! kernel_metadata recurrent_kernel_metadata "
        "bias_metadata"
    ),
    "nnx.LayerNorm": (
        "num_features! * epsilon dtype param_dtype use_bias use_scale bias_init scale_init reduction_axes "
        "feature_axes axis_name axis_index_groups use_fast_variance promote_dtype rngs! bias_metadata "
        "scale_metadata"
    ),
    "nnx.Linear": (
        "in_features! out_features! * use_bias dtype param_dtype precision kernel_init bias_init dot_general "
        "promote_dtype preferred_element_type rngs! kernel_metadata bias_metadata"
    ),
    "nnx.LinearGeneral": (
        "in_features! out_features! * axis batch_axis use_bias dtype param_dtype kernel_init bias_init "
        "precision promote_dtype dot_general dot_general_cls preferred_element_type rngs! kernel_metadata "
        "bias_metadata"
    ),
    "nnx.List": "it",
    "nnx.LoRA": (
        "in_features! lora_rank! out_features! * base_module dtype param_dtype a_initializer b_initializer "
        "lora_param_type promote_dtype rngs! a_metadata b_metadata"
    ),
    "nnx.LoRALinear": (
        "in_features! out_features! * lora_rank! lora_dtype lora_param_dtype a_initializer b_initializer "
        "lora_param_type lora_promote_dtype rngs! a_metadata b_metadata **"
    ),
    "nnx.ModelAndOptimizer": "model! tx! * wrt",
    "nnx.MultiHeadAttention": (
        "num_heads! in_features! qkv_features out_features num_kv_heads in_kv_features * dtype param_dtype "
        "broadcast_dropout dropout_rate deterministic precision kernel_init out_kernel_init bias_init "
        "out_bias_init use_bias attention_fn decode normalize_qk qkv_promote_dtype out_promote_dtype "
        "ln_promote_dtype qkv_dot_general out_dot_general qkv_dot_general_cls out_dot_general_cls rngs! "
        "keep_rngs kernel_metadata out_kernel_metadata bias_metadata out_bias_metadata "
        "query_ln_scale_metadata key_ln_scale_metadata"
    ),
    "nnx.metrics.MultiMetric": "**",
    "nnx.OptimizedLSTMCell": (
        "in_features! hidden_features! * gate_fn activation_fn kernel_init recurrent_kernel_init bias_init "
        "dtype param_dtype carry_init promote_dtype keep_rngs rngs! kernel_metadata recurrent_kernel_metadata "
        "bias_metadata"
    ),
    "nnx.Optimizer": "model! tx! * wrt graph",
    "nnx.PReLU": "negative_slope_init * dtype param_dtype promote_dtype negative_slope_metadata",
    "nnx.RMSNorm": (
        "num_features! * epsilon dtype param_dtype use_scale scale_init reduction_axes feature_axes axis_name "
        "axis_index_groups use_fast_variance promote_dtype rngs! scale_metadata"
    ),
    "nnx.RNN": "cell! * time_major return_carry reverse keep_order unroll state_axes broadcast_rngs rngs",
    "nnx.Rngs": "default **",
    "nnx.Sequential": "*args",
    "nnx.SimpleCell": (
        "in_features! hidden_features! * dtype param_dtype carry_init residual activation_fn kernel_init "
        "recurrent_kernel_init bias_init promote_dtype keep_rngs rngs! kernel_metadata "
        "recurrent_kernel_metadata bias_metadata"
    ),
    "nnx.SpectralNorm": "layer_instance! * n_steps epsilon dtype param_dtype error_on_non_matrix update_stats rngs!",
    "nnx.WeightNorm": (
        "layer_instance! * feature_axes use_scale scale_init epsilon dtype param_dtype variable_filter "
        "promote_dtype rngs!"
    ),
}

SIGNATURES: dict[str, Signature] = {name: _read(text) for name, text in _TEXTS.items()}
"""The constructors by the canonical name of the class."""

CALL_KEYWORDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("GRUCell", "LSTMCell", "OptimizedLSTMCell", "SimpleCell"), frozenset({"carry", "inputs"})),
    "BatchNorm": frozenset({"x", "use_running_average", "mask"}),
    "Bidirectional": frozenset(
        {"inputs", "initial_carry", "seq_lengths", "return_carry", "time_major", "reverse", "keep_order", "rngs"}
    ),
    "Conv": frozenset({"inputs", "out_sharding"}),
    "ConvTranspose": frozenset({"inputs"}),
    "Dropout": frozenset({"inputs", "deterministic", "rngs"}),
    "Einsum": frozenset({"inputs", "einsum_str", "out_sharding"}),
    "Embed": frozenset({"inputs", "out_sharding"}),
    "GroupNorm": frozenset({"x", "mask"}),
    "InstanceNorm": frozenset({"x", "mask"}),
    "LayerNorm": frozenset({"x", "mask"}),
    "Linear": frozenset({"inputs", "out_sharding"}),
    "LinearGeneral": frozenset({"inputs", "out_sharding"}),
    "LoRALinear": frozenset({"x", "out_sharding"}),
    "MultiHeadAttention": frozenset(
        {"inputs_q", "inputs_k", "inputs_v", "mask", "deterministic", "rngs", "sow_weights", "decode", "is_causal"}
        | {"out_sharding", "qkv_sharding", "input_positions"}
    ),
    "PReLU": frozenset({"inputs"}),
    "RMSNorm": frozenset({"x", "mask"}),
    "RNN": frozenset(
        {"inputs", "initial_carry", "seq_lengths", "return_carry", "time_major", "reverse", "keep_order", "rngs"}
    ),
}
"""The keywords that the layers take when they are called."""

CALL_POSITIONAL: dict[str, int] = {
    **dict.fromkeys(("Bidirectional", "ConvTranspose", "Dropout", "GroupNorm", "InstanceNorm", "LayerNorm", "RNN"), 1),
    **dict.fromkeys(("BatchNorm", "Conv", "Embed", "GRUCell", "LSTMCell", "Linear", "LinearGeneral", "LoRALinear"), 2),
    **dict.fromkeys(("OptimizedLSTMCell", "SimpleCell"), 2),
    "MultiHeadAttention": 3,
    "PReLU": 1,
}
"""How many arguments the layers take by position when they are called, in any version."""
