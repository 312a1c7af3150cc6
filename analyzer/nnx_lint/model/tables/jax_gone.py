"""Names and arguments of jax that are gone. Made by `scripts/jax_gone.py` from its releases; not edited."""

from __future__ import annotations

NEWEST = (0, 10, 2)
"""The newest release that was read."""

_ROWS: tuple[tuple[tuple[int, ...], str], ...] = (
    (
        (0, 4, 14),
        (
            "jax.ShapedArray jax.core.OpaqueDType jax.core.canonicalize_dim jax.core.diff_dim "
            "jax.core.diff_shape jax.core.dilate_dim jax.core.dilate_shape jax.core.divide_shape_sizes "
            "jax.core.greater_equal_dim jax.core.greater_equal_shape jax.core.is_dim jax.core.is_empty_shape "
            "jax.core.is_special_dim_size jax.core.opaque_dtypes jax.core.same_referent "
            "jax.core.same_shape_sizes jax.core.stride_dim jax.core.stride_shape jax.core.sum_dim "
            "jax.core.sum_shapes jax.core.symbolic_equal_one_of_dim jax.core.symbolic_equal_shape jax.curry "
            "jax.experimental.PartitionSpec jax.experimental.compilation_cache.cache_interface "
            "jax.experimental.compilation_cache.gfile_cache jax.experimental.gda_serialization "
            "jax.experimental.jax2tf.call_tf(use_custom_call) jax.experimental.pjit.NamedSharding "
            "jax.experimental.pjit.PartitionSpec jax.flatten_fun_nokwargs "
            "jax.lax.with_sharding_constraint(axis_resources) jax.numpy.DeviceArray "
            "jax.numpy.einsum(subscripts) jax.numpy.msort jax.sharding.OpShardingSharding"
        ),
    ),
    (
        (0, 4, 19),
        (
            "jax.abstract_arrays jax.core.has_opaque_dtype jax.core.is_opaque_dtype "
            "jax.dlpack.from_dlpack(dlpack) jax.experimental.pjit.ParsedPartitionSpec "
            "jax.experimental.pjit.get_array_mapping jax.experimental.pjit.hashable_pytree "
            "jax.experimental.pjit.parse_flatten_op_sharding jax.experimental.shard_map.register_rule "
            "jax.experimental.shard_map.register_standard jax.jaxpr_util jax.lax.prod jax.numpy.alltrue "
            "jax.numpy.cumproduct jax.numpy.product jax.numpy.sometrue"
        ),
    ),
    (
        (0, 4, 25),
        (
            "jax.core.TracerArrayConversionError jax.core.TracerIntegerConversionError "
            "jax.core.UnexpectedTracerError jax.core.as_hashable_function jax.core.collections jax.core.dtypes "
            "jax.core.lu jax.core.map jax.core.namedtuple jax.core.partial jax.core.pp jax.core.ref "
            "jax.core.safe_map jax.core.safe_zip jax.core.source_info_util jax.core.total_ordering "
            "jax.core.traceback_util jax.core.tuple_delete jax.core.tuple_insert jax.core.zip "
            "jax.experimental.jax2tf.jax_export jax.experimental.jax2tf.shape_poly "
            "jax.experimental.pjit.with_sharding_constraint jax.lax.dtypes jax.lax.itertools jax.lax.naryop "
            "jax.lax.naryop_dtype_rule jax.lax.standard_abstract_eval jax.lax.standard_naryop "
            "jax.lax.standard_primitive jax.lax.standard_unop jax.lax.unop jax.lax.unop_dtype_rule "
            "jax.linear_util jax.numpy.NINF jax.numpy.NZERO jax.numpy.PZERO jax.numpy.in1d "
            "jax.numpy.issubsctype jax.numpy.row_stack jax.numpy.trapz jax.prng jax.random.KeyArray "
            "jax.random.PRNGKeyArray jax.random.default_prng_impl jax.random.rbg_key "
            "jax.random.threefry2x32_key jax.random.threefry2x32_p jax.random.threefry_2x32 "
            "jax.random.unsafe_rbg_key jax.scipy.linalg.solve(sym_pos) jax.scipy.linalg.tril "
            "jax.scipy.linalg.triu jax.tree_util.AttributeKeyPathEntry jax.tree_util.GetitemKeyPathEntry "
            "jax.tree_util.register_keypaths"
        ),
    ),
    (
        (0, 4, 26),
        ("jax.enable_key_reuse_checks"),
    ),
    (
        (0, 4, 28),
        (
            "jax.core.token jax.numpy.clip(out) jax.numpy.from_dlpack(x) jax.numpy.where(condition) "
            "jax.numpy.where(x) jax.numpy.where(y) jax.scipy.special.exp1(module)"
        ),
    ),
    (
        (0, 4, 29),
        (
            "jax.config. jax.core.DimSize jax.core.Shape jax.lax.tie_in jax.nn.normalize "
            "jax.numpy.einsum_path(subscripts)"
        ),
    ),
    (
        (0, 4, 30),
        ("jax.scipy.special.beta(x) jax.scipy.special.beta(y)"),
    ),
    (
        (0, 4, 31),
        (
            "jax.core.NamedShape jax.core.as_named_shape jax.core.canonicalize_shape jax.core.definitely_equal "
            "jax.core.dimension_as_value jax.core.join_named_shapes jax.core.symbolic_equal_dim "
            "jax.experimental.maps jax.lax.pdot jax.lax.xeinsum jax.random.shuffle"
        ),
    ),
    (
        (0, 4, 34),
        (
            "jax.core.pp_aval jax.core.pp_eqn jax.core.pp_eqn_rules jax.core.pp_eqns jax.core.pp_jaxpr "
            "jax.core.pp_jaxpr_eqn_range jax.core.pp_jaxpr_skeleton jax.core.pp_jaxprs jax.core.pp_kv_pair "
            "jax.core.pp_kv_pairs jax.core.pp_var jax.core.pp_vars jax.sharding.XLACompatibleSharding "
            "jax.xla_computation"
        ),
    ),
    (
        (0, 4, 35),
        (
            "jax.lax.DotAlgorithmLike jax.lax.DotTransposeAlgorithmLike jax.lax.dot(algorithm) "
            "jax.lax.dot(transpose_algorithm) jax.lax.dot_general(algorithm) "
            "jax.lax.dot_general(transpose_algorithm)"
        ),
    ),
    (
        (0, 4, 36),
        (
            "jax.clear_backends jax.core.ConcreteArray jax.core.MainTrace jax.core.NameGatheringSubst "
            "jax.core.Sublevel jax.core.ThreadLocalState jax.core.TraceStack jax.core.TraceState "
            "jax.core.apply_todos jax.core.call_bind_with_continuation jax.core.cur_sublevel "
            "jax.core.do_subst_axis_names_jaxpr jax.core.extend_axis_env jax.core.jaxpr_uses_outfeed "
            "jax.core.map_bind jax.core.map_bind_with_continuation jax.core.new_base_main jax.core.new_main "
            "jax.core.new_sublevel jax.core.outfeed_primitives jax.core.primitive_uses_outfeed "
            "jax.core.process_env_traces_call jax.core.process_env_traces_map "
            "jax.core.raise_as_much_as_possible jax.core.stash_axis_env jax.core.subst_axis_names "
            "jax.core.subst_axis_names_eqn jax.core.subst_axis_names_jaxpr jax.core.subst_axis_names_var "
            "jax.core.thread_local_state jax.core.used_axis_names jax.experimental.export "
            "jax.experimental.shard_map.process_env_traces jax.lax.scan_bind"
        ),
    ),
    (
        (0, 4, 38),
        (
            "jax.core.check_eqn jax.core.check_type jax.core.check_valid_jaxtype jax.core.non_negative_dim "
            "jax.core.unsafe_get_current_trace_DO_NOT_USE jax.numpy.round_"
        ),
    ),
    (
        (0, 5),
        ("jax.experimental.array_api jax.lax.dot_general(out_type) jax.numpy.einsum(out_type)"),
    ),
    (
        (0, 5, 1),
        (
            "jax.core.JaxprDebugInfo jax.lax.broadcast(sharding) jax.lax.broadcast_in_dim(sharding) "
            "jax.lax.broadcasted_iota(sharding) jax.lax.reshape(sharding) jax.tools.build_utils"
        ),
    ),
    (
        (0, 5, 3),
        (
            "jax.experimental.jax2tf.examples jax.get_ty jax.make_mesh(auto_axes) jax.make_mesh(explicit_axes) "
            "jax.make_mesh(manual_axes) jax.sharding.AxisTypes"
        ),
    ),
    (
        (0, 6),
        (
            "jax.core.AxisSize jax.core.ClosedJaxpr jax.core.EvalTrace jax.core.InDBIdx jax.core.InputType "
            "jax.core.Jaxpr jax.core.JaxprEqn jax.core.Literal jax.core.MapPrimitive jax.core.OpaqueTraceState "
            "jax.core.OutDBIdx jax.core.Primitive jax.core.TRACER_LEAK_DEBUGGER_WARNING jax.core.Token "
            "jax.core.Var jax.core.concrete_aval jax.core.dedup_referents jax.core.escaped_tracer_error "
            "jax.core.extend_axis_env_nd jax.core.full_lower jax.core.get_referent jax.core.jaxpr_as_fun "
            "jax.core.join_effects jax.core.lattice_join jax.core.leaked_tracer_error "
            "jax.core.maybe_find_leaked_tracers jax.core.raise_to_shaped jax.core.raise_to_shaped_mappings "
            "jax.core.reset_trace_state jax.core.str_eqn_compact jax.core.substitute_vars_in_output_ty "
            "jax.core.typecompat jax.core.used_axis_names_jaxpr "
            "jax.experimental.array_serialization.serialization_test jax.experimental.jax2tf.tests "
            "jax.experimental.shard_map.get_replication jax.experimental.shard_map.pbroadcast "
            "jax.experimental.shard_map.pbroadcast_p jax.experimental.shard_map.psum2_p jax.jit(fun) "
            "jax.lax.random_gamma_grad_p jax.nn.log_softmax(initial) jax.nn.softmax(initial) "
            "jax.numpy.reshape(newshape) jax.tree_flatten jax.tree_leaves jax.tree_map jax.tree_structure "
            "jax.tree_transpose jax.tree_unflatten jax.treedef_is_leaf"
        ),
    ),
    (
        (0, 6, 1),
        (
            "jax.custom_derivatives.custom_vjp_call_jaxpr_p jax.experimental.pallas.gpu "
            "jax.experimental.shard_map.AxisNames jax.experimental.shard_map.JaxType "
            "jax.experimental.shard_map.MaybeTracer jax.experimental.shard_map.NoFail "
            "jax.experimental.shard_map.P jax.experimental.shard_map.RepType "
            "jax.experimental.shard_map.RewriteTrace jax.experimental.shard_map.RewriteTracer "
            "jax.experimental.shard_map.ShardMapPrimitive jax.experimental.shard_map.ShardMapTrace "
            "jax.experimental.shard_map.ShardMapTracer jax.experimental.shard_map.SpecErrorType "
            "jax.experimental.shard_map.T jax.experimental.shard_map.Val jax.experimental.shard_map.eager_rules "
            "jax.experimental.shard_map.get_mesh_from_args jax.experimental.shard_map.no_fail "
            "jax.experimental.shard_map.pmap jax.experimental.shard_map.register_check "
            "jax.experimental.shard_map.register_norewrite "
            "jax.experimental.shard_map.register_reduction_collective "
            "jax.experimental.shard_map.register_rewrite jax.experimental.shard_map.register_standard_check "
            "jax.experimental.shard_map.register_standard_collective "
            "jax.experimental.shard_map.register_standard_rewrite jax.experimental.shard_map.shard_map_p "
            "jax.spmd_mode"
        ),
    ),
    (
        (0, 7),
        (
            "jax.core.AxisName jax.core.ConcretizationTypeError jax.core.axis_frame jax.core.call_p "
            "jax.core.closed_call_p jax.core.get_type jax.core.trace_state_clean jax.core.typecheck "
            "jax.core.typematch jax.dlpack.to_dlpack jax.experimental.attrs jax.experimental.pjit.pjit_p "
            "jax.experimental.shard jax.lax.infeed jax.lax.infeed_p jax.lax.outfeed jax.lax.outfeed_p "
            "jax.sharding.GSPMDSharding jax.sharding.PositionalSharding jax.stages.OutInfo "
            "jax.tree_util.build_tree"
        ),
    ),
    (
        (0, 7, 1),
        ("jax.lax.scatter_add(out_sharding) jax.sharding.use_mesh"),
    ),
    (
        (0, 7, 2),
        ("jax.experimental.jax2tf.impl_no_xla"),
    ),
    (
        (0, 8),
        (
            "jax.custom_derivatives.custom_jvp_call_jaxpr_p jax.dlpack.SUPPORTED_DTYPES "
            "jax.errors.SimplifiedTraceback jax.experimental.host_callback jax.experimental.shard_map.AxisName "
            "jax.experimental.shard_map.Specs jax.experimental.shard_map.shard_map(auto) jax.extend.ffi "
            "jax.util"
        ),
    ),
    (
        (0, 8, 2),
        (
            "jax.core.DShapedArray jax.core.UnshapedArray jax.experimental.saved_input_vjp "
            "jax.experimental.si_vjp jax.jit(abstracted_axes) jax.lax.all_gather_invariant "
            "jax.lax.all_gather_reduced jax.lax.preduced jax.lax.unreduced_psum jax.lax.unreduced_psum_scatter "
            "jax.make_jaxpr(abstracted_axes)"
        ),
    ),
    (
        (0, 9),
        (
            "jax.ArrayRef jax.array_ref jax.experimental.MutableArray jax.experimental.disable_x64 "
            "jax.experimental.enable_x64 jax.experimental.mutable_array jax.lax.zeros_like_array "
            "jax.lib.xla_bridge jax.lib.xla_client jax.lib.xla_extension jax.numpy.nanpercentile(interpolation) "
            "jax.numpy.nanquantile(interpolation) jax.numpy.percentile(interpolation) "
            "jax.numpy.quantile(interpolation)"
        ),
    ),
    (
        (0, 9, 2),
        ("jax.tools.colab_tpu"),
    ),
    (
        (0, 10),
        (
            "jax.ad_checkpoint.checkpoint jax.ad_checkpoint.remat jax.core.AbstractToken jax.core.TraceTag "
            "jax.core.call_impl jax.core.get_aval jax.core.mapped_aval jax.core.set_current_trace "
            "jax.core.subjaxprs jax.core.take_current_trace jax.core.traverse_jaxpr_params "
            "jax.core.unmapped_aval jax.custom_transpose jax.device_put_replicated jax.device_put_sharded "
            "jax.enable_custom_vjp_by_custom_transpose jax.experimental.custom_dce jax.experimental.sparse.nm "
            "jax.experimental.x64_context jax.lax.all_gather_done jax.lax.all_gather_start jax.lax.pvary "
            "jax.memory. jax.numpy.clip(a) jax.numpy.clip(a_max) jax.numpy.clip(a_min) jax.numpy.fix "
            "jax.pmap(global_arg_shapes) jax.scipy.special.sph_harm jax.sharding.PmapSharding"
        ),
    ),
    (
        (0, 10, 1),
        ("jax.experimental.pjit.AUTO"),
    ),
)

GONE: dict[str, tuple[int, ...]] = {name: since for since, names in _ROWS for name in names.split()}
"""The first release without a name. An argument stands as ``jax.numpy.clip(a_min)``; as ``jax.config.`` a module that
is gone, while its package has something else of that name.
"""
