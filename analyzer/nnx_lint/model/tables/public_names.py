"""What jax and optax have. Made by `scripts/public_names.py` from what is installed; not edited."""

from __future__ import annotations

MADE_FROM = {"flax": "0.12.12", "jax": "0.12.0.1", "optax": "0.2.8"}
"""The newest versions of the libraries that were asked."""

_ROWS: tuple[tuple[str, str], ...] = (
    (
        "jax",
        (
            "Array CompilerEffortLevel Device Inline NamedSharding P Ref ShapeDtypeStruct Shard ad ad_checkpoint "
            "allow_f16_reductions api_util array_garbage_collection_guard auto_pcast block_until_ready "
            "check_tracer_leaks checking_leaks checkpoint checkpoint_policies clear_caches closure_convert "
            "cloud_tpu_init collect_profile config copy_to_host_async core custom_batching custom_derivatives "
            "custom_gradient custom_jvp custom_vjp debug debug_infs debug_key_reuse debug_nans default_backend "
            "default_device default_matmul_precision default_prng_impl device_count device_get device_put "
            "device_put_replicated device_put_sharded devices disable_jit distributed dlpack ds dtypes "
            "effects_barrier empty_ref enable_checks enable_custom_prng enable_x64 ensure_compile_time_eval errors "
            "eval_shape example_libraries experimental explain_cache_misses export extend ffi flatten_util float0 "
            "free_ref freeze fwd_and_bwd get_abstract_mesh get_mesh grad hessian host_count host_id host_ids image "
            "interpreters jacfwd jacobian jacrev jax2tf_associative_scan_reductions jit jvp lax legacy_prng_key lib "
            "linear_transpose linearize live_arrays local_device_count local_devices log_compiles "
            "make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays "
            "make_jaxpr make_mesh make_user_context memory monitoring named_call named_scope new_ref nn no_execution "
            "no_tracing numpy numpy_dtype_promotion numpy_rank_promotion ops pmap print_environment_info "
            "process_count process_index process_indices profiler pure_callback random ref remat "
            "remove_size_one_mesh_axis_from_type reshard scipy set_mesh shard_map sharding smap softmax_custom_jvp "
            "stages test_util thread_guard threefry_partitionable tools transfer_guard "
            "transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device tree "
            "tree_util typeof typing use_abstract_mesh value_and_grad version vjp vmap"
        ),
    ),
    (
        "jax.lax",
        (
            "AccuracyMode ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers DotAlgorithm DotAlgorithmPreset "
            "DotDimensionNumbers FftType GatherDimensionNumbers GatherScatterMode Precision PrecisionLike "
            "RaggedDotDimensionNumbers RandomAlgorithm RoundingMethod ScatterDimensionNumbers Tolerance abs abs_p "
            "acos acos_p acosh acosh_p add add_p after_all after_all_p all_gather all_gather_p all_to_all "
            "all_to_all_p and_p approx_max_k approx_min_k approx_top_k_p argmax argmax_p argmin argmin_p asin asin_p "
            "asinh asinh_p associative_scan atan atan2 atan2_p atan_p atanh atanh_p axis_index axis_index_p axis_size "
            "batch_matmul bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p betainc bitcast_convert_type "
            "bitcast_convert_type_p bitwise_and bitwise_not bitwise_or bitwise_xor broadcast broadcast_in_dim "
            "broadcast_in_dim_p broadcast_like broadcast_shapes broadcast_to_rank broadcasted_iota cbrt cbrt_p ceil "
            "ceil_p clamp clamp_p clz clz_p collapse complex complex_p composite concatenate concatenate_p cond "
            "cond_p conj conj_p conv conv_dimension_numbers conv_general_dilated conv_general_dilated_local "
            "conv_general_dilated_p conv_general_dilated_patches conv_general_permutations conv_general_shape_tuple "
            "conv_shape_tuple conv_transpose conv_transpose_shape_tuple conv_with_general_padding "
            "convert_element_type convert_element_type_p copy_p cos cos_p cosh cosh_p create_token create_token_p "
            "cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod cumprod_p cumsum cumsum_p "
            "custom_linear_solve custom_root dce_sink dce_sink_p device_put_p digamma digamma_p div div_p dot "
            "dot_general dot_general_p dtype dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_slice_p "
            "dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim dynamic_update_slice_p "
            "empty eq eq_p eq_to_p erf erf_inv erf_inv_p erf_p erfc erfc_p exp exp2 exp2_p exp_p expand_dims expm1 "
            "expm1_p fft fft_p floor floor_p fori_loop full full_like gather gather_p ge ge_p gt gt_p igamma "
            "igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p imag imag_p index_in_dim index_take integer_pow "
            "integer_pow_p iota iota_p is_finite is_finite_p le le_p le_to_p lgamma lgamma_p linalg linear_solve_p "
            "log log1p log1p_p log2 log2_p log_p logistic logistic_p lt lt_p lt_to_p map max max_p min min_p mul "
            "mul_p mulhi mulhi_p ne ne_p neg neg_p nextafter nextafter_p not_p one_minus_square one_minus_square_p "
            "optimization_barrier optimization_barrier_p or_p pad pad_p padtype_to_pads pbroadcast pcast "
            "platform_dependent pmax pmax_p pmean pmin pmin_p polygamma polygamma_p polynomial polynomial_p "
            "population_count population_count_p pow pow_p ppermute ppermute_p precv psend pshuffle psum psum_p "
            "psum_scatter psum_scatter_start pswapaxes pvary ragged_all_to_all ragged_all_to_all_p ragged_dot "
            "ragged_dot_general random_gamma_grad real real_p reciprocal reduce reduce_and reduce_and_p reduce_max "
            "reduce_max_p reduce_min reduce_min_p reduce_or reduce_or_p reduce_p reduce_precision reduce_precision_p "
            "reduce_prod reduce_prod_p reduce_sum reduce_sum_p reduce_window reduce_window_max_p reduce_window_min_p "
            "reduce_window_p reduce_window_shape_tuple reduce_window_sum_p reduce_xor reduce_xor_p "
            "regularized_incomplete_beta_p rem rem_p reshape reshape_p rev rev_p rng_bit_generator "
            "rng_bit_generator_p rng_uniform rng_uniform_p round round_p rsqrt rsqrt_p scaled_dot scan scan_p scatter "
            "scatter_add scatter_add_p scatter_apply scatter_max scatter_max_p scatter_min scatter_min_p scatter_mul "
            "scatter_mul_p scatter_p scatter_sub scatter_sub_p select select_and_gather_add_p "
            "select_and_scatter_add_p select_and_scatter_p select_n select_n_p shape_as_value sharding_constraint_p "
            "shift_left shift_left_p shift_right_arithmetic shift_right_arithmetic_p shift_right_logical "
            "shift_right_logical_p sign sign_p sin sin_p sinh sinh_p slice slice_in_dim slice_p sort sort_key_val "
            "sort_p split split_p sqrt sqrt_p square square_p squeeze squeeze_p stack stack_p stage stage_p "
            "stop_gradient stop_gradient_p sub sub_p switch tan tan_p tanh tanh_p tile tile_p top_k top_k_p transpose "
            "transpose_p unstack unstack_p while_loop while_p with_sharding_constraint xor_p zeta zeta_p"
        ),
    ),
    (
        "jax.nn",
        (
            "celu dot_product_attention elu gelu get_scaled_dot_general_config glu hard_sigmoid hard_silu hard_swish "
            "hard_tanh identity initializers leaky_relu log1mexp log_sigmoid log_softmax logmeanexp logsumexp mish "
            "one_hot relu relu6 scaled_dot_general scaled_matmul selu sigmoid silu soft_sign softmax softplus "
            "sparse_plus sparse_sigmoid squareplus standardize swish tanh"
        ),
    ),
    (
        "jax.numpy",
        (
            "ComplexWarning abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis "
            "apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition "
            "argsort argwhere around array array_equal array_equiv array_repr array_split array_str asarray asin "
            "asinh astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett bfloat16 bincount "
            "bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift "
            "bitwise_xor blackman block bool bool_ broadcast_arrays broadcast_shapes broadcast_to c_ can_cast cbrt "
            "cdouble ceil character choose clip column_stack complex128 complex64 complex_ complexfloating compress "
            "concat concatenate conj conjugate convolve copy copysign corrcoef correlate cos cosh count_nonzero cov "
            "cross csingle cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees delete diag diag_indices "
            "diag_indices_from diagflat diagonal diff digitize divide divmod dot double dsplit dstack dtype e ediff1d "
            "einsum einsum_path empty empty_like equal euler_gamma exp exp2 expand_dims expm1 extract eye fabs fft "
            "fill_diagonal finfo fix flatnonzero flexible flip fliplr flipud float16 float32 float4_e2m1fn float64 "
            "float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
            "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ float_power floating floor floor_divide fmax fmin fmod "
            "frexp from_dlpack frombuffer fromfile fromfunction fromiter frompyfunc fromstring full full_like gcd "
            "generic geomspace get_printoptions gradient greater greater_equal hamming hanning heaviside histogram "
            "histogram2d histogram_bin_edges histogramdd hsplit hstack hypot i0 identity iinfo imag index_exp indices "
            "inexact inf inner insert int1 int16 int2 int32 int4 int64 int8 int_ integer interp intersect1d invert "
            "isclose iscomplex iscomplexobj isdtype isfinite isin isinf isnan isneginf isposinf isreal isrealobj "
            "isscalar issubdtype iterable ix_ kaiser kron lcm ldexp left_shift less less_equal lexsort linalg "
            "linspace load log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor "
            "logspace mask_indices matmul matrix_transpose matvec max maximum mean median meshgrid mgrid min minimum "
            "minmax mod modf moveaxis multiply nan nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean "
            "nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndarray ndim negative newaxis "
            "nextafter nonzero not_equal number object_ ogrid ones ones_like outer packbits pad partition percentile "
            "permute_dims pi piecewise place poly polyadd polyder polydiv polyfit polyint polymul polysub polyval "
            "positive pow power printoptions prod promote_types ptp put put_along_axis quantile r_ rad2deg radians "
            "ravel ravel_multi_index real reciprocal remainder repeat reshape resize result_type right_shift rint "
            "roll rollaxis roots rot90 round s_ save savez searchsorted select set_printoptions setdiff1d setxor1d "
            "shape sign signbit signedinteger sin sinc single sinh size sort sort_complex spacing split sqrt square "
            "squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile top_k trace "
            "transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros triu triu_indices "
            "triu_indices_from true_divide trunc ufunc uint uint1 uint16 uint2 uint32 uint4 uint64 uint8 union1d "
            "unique unique_all unique_counts unique_inverse unique_values unpackbits unravel_index unsignedinteger "
            "unstack unwrap vander var vdot vecdot vecmat vectorize vsplit vstack where zeros zeros_like"
        ),
    ),
    (
        "jax.numpy.linalg",
        (
            "cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm matrix_power "
            "matrix_rank matrix_transpose multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot tensorinv "
            "tensorsolve trace vecdot vector_norm"
        ),
    ),
    (
        "jax.random",
        (
            "Key PRNGKey ball bernoulli beta binomial bits categorical cauchy chisquare choice clone dirichlet "
            "double_sided_maxwell exponential f fold_in gamma generalized_normal geometric gumbel key key_data "
            "key_dtype key_impl laplace loggamma logistic lognormal maxwell multinomial multivariate_normal normal "
            "orthogonal pareto permutation poisson rademacher randint random_gamma_p rayleigh split t triangular "
            "truncated_normal uniform wald weibull_min wrap_key_data"
        ),
    ),
    (
        "jax.scipy.special",
        (
            "bernoulli bessel_jn beta betainc betaln boxcox boxcox1p comb dawsn digamma entr erf erfc erfcinv erfcx "
            "erfinv exp1 expi expit expn factorial fresnel gamma gammainc gammaincc gammaln gammasgn hyp1f1 hyp2f1 i0 "
            "i0e i1 i1e kl_div log_ndtr log_softmax loggamma logit logsumexp lpmn lpmn_values multigammaln ndtr ndtri "
            "owens_t poch polygamma rel_entr sici softmax spence sph_harm sph_harm_y wofz xlog1py xlogy zeta"
        ),
    ),
    (
        "jax.tree",
        (
            "all broadcast flatten flatten_with_path leaves leaves_with_path map map_with_path reduce "
            "reduce_associative static structure transpose unflatten"
        ),
    ),
    (
        "jax.tree_util",
        (
            "DictKey FlattenedIndexKey GetAttrKey KeyEntry KeyPath Partial PyTreeDef SequenceKey all_leaves "
            "default_registry flatten_one_level flatten_one_level_with_keys is_tree_node keystr register_dataclass "
            "register_pytree_node register_pytree_node_class register_pytree_with_keys "
            "register_pytree_with_keys_class register_static tree_all tree_broadcast tree_flatten "
            "tree_flatten_with_path tree_leaves tree_leaves_with_path tree_map tree_map_with_path tree_reduce "
            "tree_reduce_associative tree_structure tree_transpose tree_unflatten treedef_children treedef_is_leaf "
            "treedef_tuple"
        ),
    ),
    (
        "jax.nn.initializers",
        (
            "Initializer constant delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform kaiming_normal "
            "kaiming_uniform lecun_normal lecun_uniform normal ones orthogonal truncated_normal uniform "
            "variance_scaling xavier_normal xavier_uniform zeros"
        ),
    ),
    (
        "nnx.initializers",
        (
            "DtypeLikeInexact Initializer constant delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform "
            "kaiming_normal kaiming_uniform lecun_normal lecun_uniform normal ones ones_init orthogonal tp "
            "truncated_normal uniform variance_scaling xavier_normal xavier_uniform zeros zeros_init"
        ),
    ),
    (
        "nnx.metrics",
        (
            "Accuracy Average Metric MetricState MultiMetric Pytree Statistics Variable Welford annotations filterlib "
            "graphlib jax jnp np struct tp"
        ),
    ),
    (
        "optax",
        (
            "AdaptiveGradClipState AddDecayedWeightsState AddNoiseState ApplyEvery ApplyIfFiniteState "
            "ClipByGlobalNormState ClipState ConditionallyMaskState ConditionallyTransformState "
            "DifferentiallyPrivateAggregateState EmaState EmptyState FactoredState GradientTransformation "
            "GradientTransformationExtraArgs InjectHyperparamsState InjectStatefulHyperparamsState LookaheadParams "
            "LookaheadState MaskOrFn MaskedNode MaskedState MonitorState MultiSteps MultiStepsState "
            "MultiTransformState NonNegativeParamsState OptState Params PartitionState ScalarOrSchedule "
            "ScaleByAdaDeltaState ScaleByAdamState ScaleByAdanState ScaleByAmsgradState "
            "ScaleByBacktrackingLinesearchState ScaleByBeliefState ScaleByLBFGSState ScaleByLionState "
            "ScaleByNovogradState ScaleByRStdDevState ScaleByRmsState ScaleByRpropState ScaleByRssState "
            "ScaleBySM3State ScaleByScheduleState ScaleByTrustRatioState ScaleByZoomLinesearchState ScaleState "
            "Schedule ShouldSkipUpdateFunction SnapshotState TraceState TransformInitFn TransformUpdateExtraArgsFn "
            "TransformUpdateFn Updates WrappedSchedule ZeroNansState ZoomLinesearchInfo adabelief adadelta adafactor "
            "adagrad adam adamax adamaxw adamw adan adaptive_grad_clip add_decayed_weights add_noise amsgrad "
            "apply_every apply_if_finite apply_updates assignment bias_correction centralize chain clip "
            "clip_by_block_rms clip_by_global_norm conditionally_mask conditionally_transform constant_schedule "
            "contrib convex_kl_divergence cosine_decay_schedule cosine_distance cosine_onecycle_schedule "
            "cosine_similarity ctc_loss ctc_loss_with_forward_probs differentially_private_aggregate dpsgd ema "
            "experimental exponential_decay flatten freeze fromage generalized_kl_divergence global_norm hinge_loss "
            "huber_loss identity incremental_update init_empty_state inject_hyperparams inject_stateful_hyperparams "
            "join_schedules keep_params_nonnegative kl_divergence l2_loss lamb lars lbfgs linear_onecycle_schedule "
            "linear_schedule lion log_cosh lookahead losses masked matrix_inverse_pth_root measure_with_ema "
            "microbatch microbatching monitor monte_carlo multi_normal multi_transform nadam nadamw named_chain nnls "
            "noisy_sgd normalize_by_update_norm novograd ntxent optax_test optimistic_adam optimistic_adam_v2 "
            "optimistic_gradient_descent partition per_example_global_norm_clip per_example_layer_norm_clip "
            "periodic_update perturbations piecewise_constant_schedule piecewise_interpolate_schedule polyak_sgd "
            "polynomial_schedule power_iteration projections radam rmsprop rprop safe_increment safe_int32_increment "
            "safe_norm safe_root_mean_squares safe_softmax_cross_entropy scale scale_by_adadelta scale_by_adam "
            "scale_by_adamax scale_by_adan scale_by_amsgrad scale_by_backtracking_linesearch scale_by_belief "
            "scale_by_distance_over_gradients scale_by_factored_rms scale_by_lbfgs scale_by_learning_rate "
            "scale_by_lion scale_by_novograd scale_by_optimistic_gradient scale_by_param_block_norm "
            "scale_by_param_block_rms scale_by_polyak scale_by_radam scale_by_rms scale_by_rprop scale_by_rss "
            "scale_by_schedule scale_by_sign scale_by_sm3 scale_by_stddev scale_by_trust_ratio scale_by_yogi "
            "scale_by_zoom_linesearch scale_gradient schedules second_order selective_transform set_to_zero sgd "
            "sgdr_schedule sigmoid_binary_cross_entropy sigmoid_focal_loss sign_sgd signum skip_large_updates "
            "skip_not_finite sm3 smooth_labels snapshot softmax_cross_entropy "
            "softmax_cross_entropy_with_integer_labels squared_error stateless stateless_with_tree_map trace "
            "transforms tree tree_map_params tree_utils update_infinity_moment update_moment "
            "update_moment_per_elem_norm value_and_grad_from_state warmup_constant_schedule "
            "warmup_cosine_decay_schedule warmup_exponential_decay_schedule with_extra_args_support yogi zero_nans"
        ),
    ),
    (
        "optax.losses",
        (
            "binary_dice_loss convex_kl_divergence cosine_distance cosine_similarity ctc_loss "
            "ctc_loss_with_forward_probs dice_loss generalized_kl_divergence hinge_loss huber_loss kl_divergence "
            "kl_divergence_with_log_targets l2_loss log_cosh make_fenchel_young_loss multiclass_generalized_dice_loss "
            "multiclass_hinge_loss multiclass_perceptron_loss multiclass_sparsemax_loss ntxent perceptron_loss "
            "poly_loss_cross_entropy ranking_softmax_loss safe_softmax_cross_entropy sigmoid_binary_cross_entropy "
            "sigmoid_focal_loss smooth_labels softmax_cross_entropy softmax_cross_entropy_with_integer_labels "
            "sparsemax_loss squared_error triplet_margin_loss"
        ),
    ),
)

NAMES: dict[str, frozenset[str]] = {namespace: frozenset(names.split()) for namespace, names in _ROWS}
"""The public names of a namespace, modules included."""

_PARAMETERS: tuple[tuple[str, str], ...] = (
    (
        "jax.lax",
        (
            "abs:x, acos:x, acosh:x, add:x y, after_all:operands, all_gather:x axis_name axis_index_groups axis tiled "
            "to, all_to_all:x axis_name split_axis concat_axis axis_index_groups tiled, approx_max_k:operand k "
            "reduction_dimension recall_target reduction_input_size_override aggregate_to_topk, approx_min_k:operand "
            "k reduction_dimension recall_target reduction_input_size_override aggregate_to_topk, argmax:operand axis "
            "index_dtype, argmin:operand axis index_dtype, asin:x, asinh:x, associative_scan:fn elems reverse axis, "
            "atan:x, atan2:x y, atanh:x, axis_index:axis_name, axis_size:axis_name, batch_matmul:lhs rhs precision, "
            "bessel_i0e:x, bessel_i1e:x, betainc:a b x, bitcast_convert_type:operand new_dtype, bitwise_and:x y, "
            "bitwise_not:x, bitwise_or:x y, bitwise_xor:x y, broadcast:operand sizes out_sharding, "
            "broadcast_in_dim:operand shape broadcast_dimensions out_sharding, broadcast_like:arr like_arr, "
            "broadcast_shapes:shapes, broadcast_to_rank:x rank, broadcasted_iota:dtype shape dimension out_sharding, "
            "cbrt:x accuracy, ceil:x, clamp:min x max, clz:x, collapse:operand start_dimension stop_dimension, "
            "complex:x y, composite:decomposition name version, concatenate:operands dimension, cond:pred true_fun "
            "false_fun operands operand, conj:x, conv:lhs rhs window_strides padding precision "
            "preferred_element_type, conv_dimension_numbers:lhs_shape rhs_shape dimension_numbers, "
            "conv_general_dilated:lhs rhs window_strides padding lhs_dilation rhs_dilation dimension_numbers "
            "feature_group_count batch_group_count precision preferred_element_type out_sharding, "
            "conv_general_dilated_local:lhs rhs window_strides padding filter_shape lhs_dilation rhs_dilation "
            "dimension_numbers precision, conv_general_dilated_patches:lhs filter_shape window_strides padding "
            "lhs_dilation rhs_dilation dimension_numbers precision preferred_element_type, "
            "conv_general_permutations:dimension_numbers, conv_general_shape_tuple:lhs_shape rhs_shape window_strides "
            "padding dimension_numbers, conv_shape_tuple:lhs_shape rhs_shape strides pads batch_group_count, "
            "conv_transpose:lhs rhs strides padding rhs_dilation dimension_numbers transpose_kernel precision "
            "preferred_element_type use_consistent_padding, conv_transpose_shape_tuple:lhs_shape rhs_shape "
            "window_strides padding dimension_numbers, conv_with_general_padding:lhs rhs window_strides padding "
            "lhs_dilation rhs_dilation precision preferred_element_type, convert_element_type:operand new_dtype, "
            "cos:x accuracy, cosh:x, create_token:_, cumlogsumexp:operand axis reverse, cummax:operand axis reverse, "
            "cummin:operand axis reverse, cumprod:operand axis reverse, cumsum:operand axis reverse, "
            "custom_linear_solve:matvec b solve transpose_solve symmetric has_aux, custom_root:f initial_guess solve "
            "tangent_solve has_aux, dce_sink:val prevent_mlir_dce, digamma:x, div:x y, dot:lhs rhs dimension_numbers "
            "precision preferred_element_type out_sharding, dot_general:lhs rhs dimension_numbers precision "
            "preferred_element_type out_sharding, dtype:x, dynamic_index_in_dim:operand index axis keepdims "
            "allow_negative_indices, dynamic_slice:operand start_indices slice_sizes allow_negative_indices, "
            "dynamic_slice_in_dim:operand start_index slice_size axis allow_negative_indices, "
            "dynamic_update_index_in_dim:operand update index axis allow_negative_indices, "
            "dynamic_update_slice:operand update start_indices allow_negative_indices, "
            "dynamic_update_slice_in_dim:operand update start_index axis allow_negative_indices, empty:shape dtype "
            "out_sharding, eq:x y, erf:x, erf_inv:x, erfc:x accuracy, exp:x accuracy, exp2:x accuracy, "
            "expand_dims:array dimensions, expm1:x accuracy, fft:x fft_type fft_lengths, floor:x, fori_loop:lower "
            "upper body_fun init_val unroll, full:shape fill_value dtype sharding, full_like:x fill_value dtype shape "
            "sharding, gather:operand start_indices dimension_numbers slice_sizes unique_indices indices_are_sorted "
            "mode fill_value, ge:x y, gt:x y, igamma:a x, igamma_grad_a:a x, igammac:a x, imag:x, "
            "index_in_dim:operand index axis keepdims, index_take:src idxs axes, integer_pow:x y, iota:dtype size, "
            "is_finite:x, le:x y, lgamma:x, log:x accuracy, log1p:x accuracy, log2:x accuracy, logistic:x accuracy, "
            "lt:x y, map:f xs batch_size, max:x y, min:x y, mul:x y out_dtype, mulhi:x y, ne:x y, neg:x, nextafter:x1 "
            "x2, one_minus_square:x, optimization_barrier:operand, pad:operand padding_value padding_config, "
            "padtype_to_pads:in_shape window_shape window_strides padding, pbroadcast:x axis_name source, pcast:x "
            "axis_name to, pmax:x axis_name axis_index_groups, pmean:x axis_name axis_index_groups, pmin:x axis_name "
            "axis_index_groups, polygamma:m x, polynomial:x coeffs unroll, population_count:x, pow:x y, ppermute:x "
            "axis_name perm, precv:token out_shape axis_name perm, psend:x axis_name perm, pshuffle:x axis_name perm, "
            "psum:x axis_name axis_index_groups, psum_scatter:x axis_name scatter_dimension axis_index_groups tiled, "
            "pswapaxes:x axis_name axis axis_index_groups, ragged_all_to_all:operand output input_offsets send_sizes "
            "output_offsets recv_sizes axis_name axis_index_groups, ragged_dot:lhs rhs group_sizes precision "
            "preferred_element_type group_offset out_sharding, ragged_dot_general:lhs rhs group_sizes "
            "ragged_dot_dimension_numbers precision preferred_element_type group_offset out_sharding, "
            "random_gamma_grad:args, real:x, reciprocal:x, reduce:operands init_values computation dimensions "
            "out_sharding, reduce_and:operand axes, reduce_max:operand axes out_sharding, reduce_min:operand axes "
            "out_sharding, reduce_or:operand axes, reduce_precision:operand exponent_bits mantissa_bits, "
            "reduce_prod:operand axes, reduce_sum:operand axes out_sharding, reduce_window:operand init_value "
            "computation window_dimensions window_strides padding base_dilation window_dilation, "
            "reduce_window_shape_tuple:operand_shape window_dimensions window_strides padding base_dilation "
            "window_dilation, reduce_xor:operand axes, rem:x y, reshape:operand new_sizes dimensions out_sharding, "
            "rev:operand dimensions, rng_bit_generator:key shape dtype algorithm out_sharding, rng_uniform:a b shape, "
            "round:x rounding_method, rsqrt:x accuracy, scaled_dot:lhs rhs lhs_scale rhs_scale dimension_numbers "
            "preferred_element_type, scan:f init xs length reverse unroll _split_transpose, scatter:operand "
            "scatter_indices updates dimension_numbers indices_are_sorted unique_indices mode, scatter_add:operand "
            "scatter_indices updates dimension_numbers indices_are_sorted unique_indices mode, scatter_apply:operand "
            "scatter_indices func dimension_numbers update_shape indices_are_sorted unique_indices mode, "
            "scatter_max:operand scatter_indices updates dimension_numbers indices_are_sorted unique_indices mode, "
            "scatter_min:operand scatter_indices updates dimension_numbers indices_are_sorted unique_indices mode, "
            "scatter_mul:operand scatter_indices updates dimension_numbers indices_are_sorted unique_indices mode, "
            "scatter_sub:operand scatter_indices updates dimension_numbers indices_are_sorted unique_indices mode, "
            "select:pred on_true on_false, select_n:which cases, shape_as_value:shape, shift_left:x y, "
            "shift_right_arithmetic:x y, shift_right_logical:x y, sign:x, sin:x accuracy, sinh:x, slice:operand "
            "start_indices limit_indices strides, slice_in_dim:operand start_index limit_index stride axis, "
            "sort:operand dimension is_stable num_keys, sort_key_val:keys values dimension is_stable, split:operand "
            "sizes axis, sqrt:x accuracy, square:x, squeeze:array dimensions, stack:operands axis, stage:x, "
            "stop_gradient:x, sub:x y, switch:index branches operands operand, tan:x accuracy, tanh:x accuracy, "
            "tile:operand reps, top_k:operand k axis is_stable, transpose:operand permutation, unstack:x axis, "
            "while_loop:cond_fun body_fun init_val, with_sharding_constraint:x shardings, zeta:x q"
        ),
    ),
    (
        "jax.nn",
        (
            "celu:x alpha, dot_product_attention:query key value bias mask scale is_causal query_seq_lengths "
            "key_value_seq_lengths local_window_size implementation return_residual, elu:x alpha, gelu:x approximate, "
            "get_scaled_dot_general_config:mode global_scale, glu:x axis, hard_sigmoid:x, hard_silu:x, hard_swish:x, "
            "hard_tanh:x, identity:x, leaky_relu:x negative_slope, log1mexp:x, log_sigmoid:x, log_softmax:x axis "
            "where, logmeanexp:x axis where keepdims, logsumexp:a axis b keepdims return_sign where, mish:x, "
            "one_hot:x num_classes dtype axis out_sharding, relu:x, relu6:x, scaled_dot_general:lhs rhs "
            "dimension_numbers preferred_element_type configs implementation, scaled_matmul:lhs rhs lhs_scales "
            "rhs_scales preferred_element_type, selu:x, sigmoid:x, silu:x, soft_sign:x, softmax:x axis where, "
            "softplus:x, sparse_plus:x, sparse_sigmoid:x, squareplus:x b, standardize:x axis mean variance epsilon "
            "where algorithm, swish:x, tanh:x"
        ),
    ),
    (
        "jax.nn.initializers",
        (
            "constant:value dtype, delta_orthogonal:scale column_axis dtype, glorot_normal:in_axis out_axis "
            "batch_axis dtype, glorot_uniform:in_axis out_axis batch_axis dtype, he_normal:in_axis out_axis "
            "batch_axis dtype, he_uniform:in_axis out_axis batch_axis dtype, kaiming_normal:in_axis out_axis "
            "batch_axis dtype, kaiming_uniform:in_axis out_axis batch_axis dtype, lecun_normal:in_axis out_axis "
            "batch_axis dtype, lecun_uniform:in_axis out_axis batch_axis dtype, normal:stddev dtype, ones:key shape "
            "dtype out_sharding, orthogonal:scale column_axis dtype, truncated_normal:stddev dtype lower upper, "
            "uniform:scale dtype, variance_scaling:scale mode distribution in_axis out_axis batch_axis dtype, "
            "xavier_normal:in_axis out_axis batch_axis dtype, xavier_uniform:in_axis out_axis batch_axis dtype, "
            "zeros:key shape dtype out_sharding"
        ),
    ),
    (
        "jax.numpy",
        (
            "abs:x, absolute:x, acos:x, acosh:x, add:args out where, all:a axis out keepdims where, allclose:a b rtol "
            "atol equal_nan, amax:a axis out keepdims initial where, amin:a axis out keepdims initial where, angle:z "
            "deg, any:a axis out keepdims where, append:arr values axis, apply_over_axes:func a axes, arange:start "
            "stop step dtype device out_sharding, arccos:x, arccosh:x, arcsin:x, arcsinh:x, arctan:x, arctan2:x1 x2, "
            "arctanh:x, argmax:a axis out keepdims, argmin:a axis out keepdims, argpartition:a kth axis, argsort:a "
            "axis kind order stable descending dtype, argwhere:a size fill_value, around:a decimals out, array:object "
            "dtype copy order ndmin device out_sharding args, array_equal:a1 a2 equal_nan, array_equiv:a1 a2, "
            "array_repr:arr max_line_width precision suppress_small, array_split:ary indices_or_sections axis, "
            "array_str:a max_line_width precision suppress_small, asarray:a dtype order copy device out_sharding, "
            "asin:x, asinh:x, astype:x dtype copy device, atan:x, atan2:x1 x2, atanh:x, atleast_1d:arys, "
            "atleast_2d:arys, atleast_3d:arys, average:a axis weights returned keepdims, bartlett:M, bincount:x "
            "weights minlength length out_sharding, bitwise_and:args out where, bitwise_count:x, bitwise_invert:x, "
            "bitwise_left_shift:x y, bitwise_not:x, bitwise_or:args out where, bitwise_right_shift:x1 x2, "
            "bitwise_xor:args out where, blackman:M, block:arrays, broadcast_arrays:args, broadcast_shapes:shapes, "
            "broadcast_to:array shape out_sharding, can_cast:from_ to casting, cbrt:x, ceil:x, choose:a choices out "
            "mode, clip:arr min max, column_stack:tup, compress:condition a axis size fill_value out, concat:arrays "
            "axis, concatenate:arrays axis dtype, conj:x, conjugate:x, convolve:a v mode precision "
            "preferred_element_type, copy:a order, copysign:x1 x2, corrcoef:x y rowvar dtype, correlate:a v mode "
            "precision preferred_element_type, cos:x, cosh:x, count_nonzero:a axis keepdims, cov:m y rowvar bias ddof "
            "fweights aweights dtype, cross:a b axisa axisb axisc axis, cumprod:a axis dtype out, cumsum:a axis dtype "
            "out, cumulative_prod:x axis dtype include_initial, cumulative_sum:x axis dtype include_initial, "
            "deg2rad:x, degrees:x, delete:arr obj axis assume_unique_indices, diag:v k, diag_indices:n ndim, "
            "diag_indices_from:arr, diagflat:v k, diagonal:a offset axis1 axis2, diff:a n axis prepend append, "
            "digitize:x bins right method, divide:x1 x2, divmod:x1 x2, dot:a b precision preferred_element_type "
            "out_sharding, dsplit:ary indices_or_sections, dstack:tup dtype, ediff1d:ary to_end to_begin, "
            "einsum:subscripts operands out optimize precision preferred_element_type _dot_general out_sharding, "
            "einsum_path:subscripts operands optimize, empty:shape dtype device out_sharding, empty_like:prototype "
            "dtype shape device, equal:x y, exp:x, exp2:x, expand_dims:a axis, expm1:x, extract:condition arr size "
            "fill_value, eye:N M k dtype device, fabs:x, fill_diagonal:a val wrap inplace, flatnonzero:a size "
            "fill_value, flip:m axis, fliplr:m, flipud:m, float_power:x y, floor:x, floor_divide:x1 x2, fmax:x1 x2, "
            "fmin:x1 x2, fmod:x1 x2, frexp:x, from_dlpack:x device copy, frombuffer:buffer dtype count offset, "
            "frompyfunc:func nin nout identity, fromstring:string dtype count sep, full:shape fill_value dtype device "
            "out_sharding, full_like:a fill_value dtype shape device out_sharding, gcd:x1 x2, geomspace:start stop "
            "num endpoint dtype axis, get_printoptions:, gradient:f varargs axis edge_order, greater:x y, "
            "greater_equal:x y, hamming:M, hanning:M, heaviside:x1 x2, histogram:a bins range weights density "
            "out_sharding, histogram2d:x y bins range weights density, histogram_bin_edges:a bins range weights, "
            "histogramdd:sample bins range weights density, hsplit:ary indices_or_sections, hstack:tup dtype, "
            "hypot:x1 x2, i0:x, identity:n dtype, imag:val, indices:dimensions dtype sparse, inner:a b precision "
            "preferred_element_type, insert:arr obj values axis, interp:x xp fp left right period, intersect1d:ar1 "
            "ar2 assume_unique return_indices size fill_value, invert:x, isclose:a b rtol atol equal_nan, "
            "iscomplex:x, iscomplexobj:x, isdtype:dtype kind, isfinite:x, isin:element test_elements assume_unique "
            "invert method, isinf:x, isnan:x, isneginf:x out, isposinf:x out, isreal:x, isrealobj:x, "
            "isscalar:element, issubdtype:arg1 arg2, iterable:y, ix_:args, kaiser:M beta, kron:a b, lcm:x1 x2, "
            "ldexp:x1 x2, left_shift:x y, less:x y, less_equal:x y, lexsort:keys axis batch_size, linspace:start stop "
            "num endpoint retstep dtype axis device, log:x, log10:x, log1p:x, log2:x, logaddexp:args out where, "
            "logaddexp2:args out where, logical_and:args out where, logical_not:x, logical_or:args out where, "
            "logical_xor:args out where, logspace:start stop num endpoint base dtype axis, mask_indices:n mask_func k "
            "size, matmul:a b precision preferred_element_type out_sharding, matrix_transpose:x, matvec:x1 x2, max:a "
            "axis out keepdims initial where, maximum:args out where, mean:a axis dtype out keepdims where, median:a "
            "axis out overwrite_input keepdims, meshgrid:xi copy sparse indexing, min:a axis out keepdims initial "
            "where, minimum:args out where, minmax:a axis out keepdims initial where, mod:x1 x2, modf:x out, "
            "moveaxis:a source destination, multiply:args out where, nan_to_num:x copy nan posinf neginf, nanargmax:a "
            "axis out keepdims, nanargmin:a axis out keepdims, nancumprod:a axis dtype out, nancumsum:a axis dtype "
            "out, nanmax:a axis out keepdims initial where, nanmean:a axis dtype out keepdims where, nanmedian:a axis "
            "out overwrite_input keepdims, nanmin:a axis out keepdims initial where, nanpercentile:a q axis out "
            "overwrite_input method keepdims weights, nanprod:a axis dtype out keepdims initial where, nanquantile:a "
            "q axis out overwrite_input method keepdims weights, nanstd:a axis dtype out ddof keepdims where mean, "
            "nansum:a axis dtype out keepdims initial where, nanvar:a axis dtype out ddof keepdims where mean, "
            "ndim:a, negative:args out where, nextafter:x y, nonzero:a size fill_value, not_equal:x y, ones:shape "
            "dtype device out_sharding, ones_like:a dtype shape device out_sharding, outer:a b out, packbits:a axis "
            "bitorder, partition:a kth axis, percentile:a q axis out overwrite_input method keepdims weights "
            "out_sharding, permute_dims:a axes, place:arr mask vals inplace, poly:seq_of_zeros, polyadd:a1 a2, "
            "polyder:p m, polydiv:u v trim_leading_zeros, polyfit:x y deg rcond full w cov, polyint:p m k, polymul:a1 "
            "a2 trim_leading_zeros, polysub:a1 a2, polyval:p x unroll, positive:x, pow:x1 x2, power:x1 x2, prod:a "
            "axis dtype out keepdims initial where promote_integers, promote_types:a b, ptp:a axis out keepdims, "
            "put:a ind v mode inplace, put_along_axis:arr indices values axis inplace mode, quantile:a q axis out "
            "overwrite_input method keepdims weights, rad2deg:x, radians:x, ravel:a order out_sharding, "
            "ravel_multi_index:multi_index dims mode order dtype, real:val, reciprocal:x, remainder:x1 x2, repeat:a "
            "repeats axis total_repeat_length out_sharding, reshape:a shape order copy out_sharding, resize:a "
            "new_shape, result_type:args, right_shift:x1 x2, rint:x, roll:a shift axis, rollaxis:a axis start, "
            "roots:p strip_zeros, rot90:m k axes, round:a decimals out, save:file arr allow_pickle, searchsorted:a v "
            "side sorter method, select:condlist choicelist default, setdiff1d:ar1 ar2 assume_unique size fill_value, "
            "setxor1d:ar1 ar2 assume_unique size fill_value, shape:a, sign:x, signbit:x, sin:x, sinc:x, sinh:x, "
            "size:a axis, sort:a axis kind order stable descending, sort_complex:a, spacing:x, split:ary "
            "indices_or_sections axis, sqrt:x, square:x, squeeze:a axis, stack:arrays axis out dtype, std:a axis "
            "dtype out ddof keepdims where mean correction, subtract:args out where, sum:a axis dtype out keepdims "
            "initial where promote_integers, swapaxes:a axis1 axis2, take:a indices axis out mode unique_indices "
            "indices_are_sorted fill_value, take_along_axis:arr indices axis mode fill_value wrap_negative_indices, "
            "tan:x, tanh:x, tensordot:a b axes precision preferred_element_type out_sharding, tile:A reps, top_k:a k "
            "axis mode sorted, trace:a offset axis1 axis2 dtype out, transpose:a axes, trapezoid:y x dx axis, tri:N M "
            "k dtype, tril:m k, tril_indices:n k m, tril_indices_from:arr k, trim_zeros:filt trim axis, triu:m k, "
            "triu_indices:n k m, triu_indices_from:arr k, true_divide:x1 x2, trunc:x, union1d:ar1 ar2 size "
            "fill_value, unique:ar return_index return_inverse return_counts axis equal_nan size fill_value sorted, "
            "unique_all:x size fill_value, unique_counts:x size fill_value, unique_inverse:x size fill_value, "
            "unique_values:x size fill_value, unpackbits:a axis count bitorder, unravel_index:indices shape, "
            "unstack:x axis, unwrap:p discont axis period, vander:x N increasing, var:a axis dtype out ddof keepdims "
            "where mean correction, vdot:a b precision preferred_element_type, vecdot:x1 x2 axis precision "
            "preferred_element_type, vecmat:x1 x2, vectorize:pyfunc excluded signature, vsplit:ary "
            "indices_or_sections, vstack:tup dtype, where:condition x y size fill_value, zeros:shape dtype device "
            "out_sharding, zeros_like:a dtype shape device out_sharding"
        ),
    ),
    (
        "jax.random",
        (
            "ball:key d p shape dtype out_sharding, bernoulli:key p shape mode out_sharding, beta:key a b shape dtype "
            "method out_sharding, binomial:key n p shape dtype, bits:key shape dtype out_sharding, categorical:key "
            "logits axis shape replace mode out_sharding, cauchy:key shape dtype out_sharding, chisquare:key df shape "
            "dtype method out_sharding, choice:key a shape replace p axis mode, clone:key, dirichlet:key alpha shape "
            "dtype out_sharding, double_sided_maxwell:key loc scale shape dtype, exponential:key shape dtype "
            "out_sharding, f:key dfnum dfden shape dtype out_sharding, fold_in:key data, gamma:key a shape dtype "
            "method out_sharding, generalized_normal:key p shape dtype out_sharding, geometric:key p shape dtype "
            "out_sharding, gumbel:key shape dtype mode out_sharding, key:seed impl dtype, key_data:keys, "
            "key_dtype:impl_spec, key_impl:keys, laplace:key shape dtype out_sharding, loggamma:key a shape dtype "
            "method out_sharding, logistic:key shape dtype out_sharding, lognormal:key sigma shape dtype "
            "out_sharding, maxwell:key shape dtype out_sharding, multinomial:key n p shape dtype unroll, "
            "multivariate_normal:key mean cov shape dtype method out_sharding, normal:key shape dtype out_sharding, "
            "orthogonal:key n shape dtype m out_sharding, pareto:key b shape dtype out_sharding, permutation:key x "
            "axis independent out_sharding, poisson:key lam shape dtype method out_sharding, rademacher:key shape "
            "dtype out_sharding, randint:key shape minval maxval dtype out_sharding, rayleigh:key scale shape dtype "
            "out_sharding, split:key num, t:key df shape dtype out_sharding, triangular:key left mode right shape "
            "dtype out_sharding, truncated_normal:key lower upper shape dtype out_sharding, uniform:key shape dtype "
            "minval maxval out_sharding, wald:key mean shape dtype out_sharding, weibull_min:key scale concentration "
            "shape dtype, wrap_key_data:key_bits_array impl dtype"
        ),
    ),
    (
        "optax",
        (
            "adabelief:learning_rate b1 b2 eps eps_root nesterov, adadelta:learning_rate rho eps weight_decay "
            "weight_decay_mask, adafactor:learning_rate min_dim_size_to_factor decay_rate decay_offset "
            "multiply_by_parameter_scale clipping_threshold momentum dtype_momentum weight_decay_rate eps factored "
            "weight_decay_mask, adagrad:learning_rate initial_accumulator_value eps, adam:learning_rate b1 b2 eps "
            "eps_root mu_dtype nesterov, adamax:learning_rate b1 b2 eps, adamaxw:learning_rate b1 b2 eps weight_decay "
            "mask, adamw:learning_rate b1 b2 eps eps_root mu_dtype weight_decay mask nesterov, adan:learning_rate b1 "
            "b2 b3 eps eps_root weight_decay mask, adaptive_grad_clip:clipping eps axis, "
            "add_decayed_weights:weight_decay mask, add_noise:eta gamma key seed, amsgrad:learning_rate b1 b2 eps "
            "eps_root mu_dtype bias_correction_mu bias_correction_nu, apply_every:k, apply_if_finite:inner "
            "max_consecutive_errors, apply_updates:params updates, bias_correction:moment decay count, centralize:, "
            "chain:args, clip:max_delta, clip_by_block_rms:threshold, clip_by_global_norm:max_norm, "
            "conditionally_mask:inner should_transform_fn forward_extra_args, conditionally_transform:inner "
            "should_transform_fn forward_extra_args, constant_schedule:value, convex_kl_divergence:log_predictions "
            "targets axis where, cosine_decay_schedule:init_value decay_steps alpha exponent, "
            "cosine_distance:predictions targets epsilon axis where, cosine_onecycle_schedule:transition_steps "
            "peak_value pct_start div_factor final_div_factor, cosine_similarity:predictions targets epsilon axis "
            "where, ctc_loss:logits logit_paddings labels label_paddings blank_id log_epsilon, "
            "ctc_loss_with_forward_probs:logits logit_paddings labels label_paddings blank_id log_epsilon, "
            "differentially_private_aggregate:l2_norm_clip noise_multiplier key seed, dpsgd:learning_rate "
            "l2_norm_clip noise_multiplier seed momentum nesterov, ema:decay debias accumulator_dtype, "
            "exponential_decay:init_value transition_steps decay_rate transition_begin staircase end_value, "
            "flatten:inner, freeze:mask, fromage:learning_rate min_norm, generalized_kl_divergence:log_predictions "
            "targets axis where, global_norm:updates, hinge_loss:predictor_outputs targets, huber_loss:predictions "
            "targets delta, identity:, incremental_update:new_tensors old_tensors step_size, init_empty_state:params, "
            "inject_hyperparams:inner_factory static_args hyperparam_dtype, inject_stateful_hyperparams:inner_factory "
            "static_args hyperparam_dtype, join_schedules:schedules boundaries, keep_params_nonnegative:, "
            "kl_divergence:log_predictions targets axis where, l2_loss:predictions targets, lamb:learning_rate b1 b2 "
            "eps eps_root weight_decay mask, lars:learning_rate weight_decay weight_decay_mask trust_coefficient eps "
            "trust_ratio_mask momentum nesterov, lbfgs:learning_rate memory_size scale_init_precond linesearch, "
            "linear_onecycle_schedule:transition_steps peak_value pct_start pct_final div_factor final_div_factor, "
            "linear_schedule:init_value end_value transition_steps transition_begin, lion:learning_rate b1 b2 "
            "mu_dtype weight_decay mask, log_cosh:predictions targets, lookahead:fast_optimizer sync_period "
            "slow_step_size reset_state, masked:inner mask mask_compatible_extra_args, matrix_inverse_pth_root:matrix "
            "p num_iters ridge_epsilon error_tolerance precision, measure_with_ema:measure decay debias "
            "accumulator_dtype, microbatch:fun argnums microbatch_size accumulator argnames in_axes "
            "num_real_microbatches, monitor:measures, multi_normal:loc log_scale, multi_transform:transforms "
            "param_labels mask_compatible_extra_args, nadam:learning_rate b1 b2 eps eps_root mu_dtype nesterov, "
            "nadamw:learning_rate b1 b2 eps eps_root mu_dtype weight_decay mask nesterov, named_chain:args, nnls:A b "
            "iters unroll L, noisy_sgd:learning_rate eta gamma key seed, normalize_by_update_norm:scale_factor eps, "
            "novograd:learning_rate b1 b2 eps eps_root weight_decay, ntxent:embeddings labels temperature, "
            "optimistic_adam:learning_rate optimism b1 b2 eps eps_root mu_dtype nesterov, "
            "optimistic_adam_v2:learning_rate alpha beta b1 b2 eps eps_root mu_dtype nesterov, "
            "optimistic_gradient_descent:learning_rate alpha beta, partition:transforms param_labels "
            "mask_compatible_extra_args, per_example_global_norm_clip:grads l2_norm_clip, "
            "per_example_layer_norm_clip:grads global_l2_norm_clip uniform, periodic_update:new_tensors old_tensors "
            "steps update_period, piecewise_constant_schedule:init_value boundaries_and_scales, "
            "piecewise_interpolate_schedule:interpolate_type init_value boundaries_and_scales, "
            "polyak_sgd:max_learning_rate scaling f_min eps variant, polynomial_schedule:init_value end_value power "
            "transition_steps transition_begin, power_iteration:matrix v0 num_iters error_tolerance precision key, "
            "radam:learning_rate b1 b2 eps eps_root threshold nesterov, rmsprop:learning_rate decay eps initial_scale "
            "eps_in_sqrt centered momentum nesterov bias_correction, rprop:learning_rate eta_minus eta_plus "
            "min_step_size max_step_size, safe_increment:count, safe_int32_increment:count, safe_norm:x min_norm ord "
            "axis keepdims, safe_root_mean_squares:x min_rms, safe_softmax_cross_entropy:logits labels, "
            "scale:step_size, scale_by_adadelta:rho eps, scale_by_adam:b1 b2 eps eps_root mu_dtype nesterov, "
            "scale_by_adamax:b1 b2 eps, scale_by_adan:b1 b2 b3 eps eps_root, scale_by_amsgrad:b1 b2 eps eps_root "
            "mu_dtype bias_correction_mu bias_correction_nu, scale_by_backtracking_linesearch:max_backtracking_steps "
            "slope_rtol decrease_factor increase_factor max_learning_rate atol rtol store_grad verbose, "
            "scale_by_belief:b1 b2 eps eps_root nesterov, scale_by_distance_over_gradients:reps_rel eps param_dtype "
            "global_scale, scale_by_factored_rms:factored decay_rate step_offset min_dim_size_to_factor epsilon "
            "decay_rate_fn, scale_by_lbfgs:memory_size scale_init_precond, scale_by_learning_rate:learning_rate "
            "flip_sign, scale_by_lion:b1 b2 mu_dtype mode smooth_beta, scale_by_novograd:b1 b2 eps eps_root "
            "weight_decay mu_dtype, scale_by_optimistic_gradient:alpha beta, scale_by_param_block_norm:min_scale, "
            "scale_by_param_block_rms:min_scale, scale_by_polyak:f_min max_learning_rate eps variant, "
            "scale_by_radam:b1 b2 eps eps_root threshold nesterov, scale_by_rms:decay eps initial_scale eps_in_sqrt "
            "bias_correction, scale_by_rprop:learning_rate eta_minus eta_plus min_step_size max_step_size, "
            "scale_by_rss:initial_accumulator_value eps, scale_by_schedule:step_size_fn, scale_by_sign:, "
            "scale_by_sm3:b1 b2 eps, scale_by_stddev:decay eps initial_scale eps_in_sqrt bias_correction, "
            "scale_by_trust_ratio:min_norm trust_coefficient eps, scale_by_yogi:b1 b2 eps eps_root "
            "initial_accumulator_value, scale_by_zoom_linesearch:max_linesearch_steps max_learning_rate tol "
            "increase_factor slope_rtol curv_rtol approx_dec_rtol stepsize_precision initial_guess_strategy verbose, "
            "scale_gradient:inputs scale, selective_transform:optimizer freeze_mask, set_to_zero:, sgd:learning_rate "
            "momentum nesterov accumulator_dtype, sgdr_schedule:cosine_kwargs, sigmoid_binary_cross_entropy:logits "
            "labels, sigmoid_focal_loss:logits labels alpha gamma, sign_sgd:learning_rate, signum:learning_rate beta "
            "accumulator_dtype, skip_large_updates:updates gradient_step params max_squared_norm, "
            "skip_not_finite:updates gradient_step params, sm3:learning_rate momentum, smooth_labels:labels alpha "
            "axis where, snapshot:measure_name measure, softmax_cross_entropy:logits labels axis where, "
            "softmax_cross_entropy_with_integer_labels:logits labels axis where, squared_error:predictions targets, "
            "stateless:f, stateless_with_tree_map:f, trace:decay nesterov accumulator_dtype, tree_map_params:initable "
            "f state rest transform_non_params is_leaf, update_infinity_moment:updates moments decay eps, "
            "update_moment:updates moments decay order, update_moment_per_elem_norm:updates moments decay order, "
            "value_and_grad_from_state:value_fn, warmup_constant_schedule:init_value peak_value warmup_steps, "
            "warmup_cosine_decay_schedule:init_value peak_value warmup_steps decay_steps end_value exponent, "
            "warmup_exponential_decay_schedule:init_value peak_value warmup_steps transition_steps decay_rate "
            "transition_begin staircase end_value, with_extra_args_support:tx, yogi:learning_rate b1 b2 eps, "
            "zero_nans:"
        ),
    ),
)

PARAMETERS: dict[str, str] = {
    f"{namespace}.{name}": names
    for namespace, rows in _PARAMETERS
    for name, _, names in (row.partition(":") for row in rows.split(", "))
}
"""The parameters of a function, one after the other; those that take any keyword are left out."""
