"""What functions of jax return. Made by `scripts/jax_results.py` from the annotations of jax; not edited."""

from __future__ import annotations

JAX = "0.10.2"

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("jax", "plain", "default_backend device_count host_count host_id local_device_count process_count process_index"),
    ("jax", "same", "block_until_ready device_put"),
    ("jax.image", "array", "resize scale_and_translate"),
    (
        "jax.lax",
        "array",
        (
            "abs acos acosh add argmax argmin asin asinh atan atan2 atanh axis_index batch_matmul bessel_i0e "
            "bessel_i1e betainc bitcast_convert_type bitwise_and bitwise_not bitwise_or bitwise_xor broadcast "
            "broadcast_in_dim broadcast_like broadcast_to_rank broadcasted_iota cbrt ceil clamp clz collapse "
            "complex concatenate conj conv conv_general_dilated conv_general_dilated_local "
            "conv_general_dilated_patches conv_transpose conv_with_general_padding convert_element_type cos cosh "
            "cumlogsumexp cummax cummin cumprod cumsum digamma div dot dot_general dynamic_index_in_dim "
            "dynamic_slice dynamic_slice_in_dim dynamic_update_index_in_dim dynamic_update_slice "
            "dynamic_update_slice_in_dim eq erf erf_inv erfc exp exp2 expand_dims expm1 fft floor full full_like "
            "gather ge gt igamma igamma_grad_a igammac imag index_in_dim index_take integer_pow iota is_finite le "
            "lgamma log log1p logistic lt max min mul mulhi ne neg nextafter pad polygamma population_count pow "
            "ragged_dot ragged_dot_general random_gamma_grad real reciprocal reduce_and reduce_max reduce_min "
            "reduce_or reduce_precision reduce_prod reduce_sum reduce_xor rem reshape rev round rsqrt scatter "
            "scatter_add scatter_apply scatter_max scatter_min scatter_mul scatter_sub select select_n shift_left "
            "shift_right_arithmetic shift_right_logical sign sin sinh slice slice_in_dim sqrt square squeeze "
            "stack stage sub tan tanh tile transpose zeta"
        ),
    ),
    ("jax.lax", "array,array", "approx_max_k approx_min_k sort_key_val top_k"),
    ("jax.lax", "list", "split"),
    ("jax.lax", "plain", "axis_size"),
    (
        "jax.lax",
        "same",
        ("optimization_barrier pcast pmax pmean pmin ppermute psum stop_gradient with_sharding_constraint"),
    ),
    ("jax.lax", "tuple", "unstack"),
    (
        "jax.lax.linalg",
        "array",
        (
            "cholesky cholesky_update householder_product lu_pivots_to_permutation ormqr triangular_solve "
            "tridiagonal_solve"
        ),
    ),
    ("jax.lax.linalg", "array,array", "eigh hessenberg schur"),
    ("jax.lax.linalg", "array,array,array", "lu"),
    ("jax.lax.linalg", "array,array,array,array", "tridiagonal"),
    ("jax.lax.linalg", "list", "eig"),
    (
        "jax.nn",
        "array",
        (
            "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp "
            "log_sigmoid log_softmax logmeanexp mish one_hot relu relu6 scaled_dot_general scaled_matmul selu "
            "sigmoid silu soft_sign softmax softplus sparse_plus sparse_sigmoid squareplus standardize swish tanh"
        ),
    ),
    ("jax.nn.initializers", "array", "ones zeros"),
    (
        "jax.nn.initializers",
        "initializer",
        (
            "constant delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform kaiming_normal "
            "kaiming_uniform lecun_normal lecun_uniform normal orthogonal truncated_normal uniform "
            "variance_scaling xavier_normal xavier_uniform"
        ),
    ),
    (
        "jax.numpy",
        "array",
        (
            "abs absolute acos acosh all allclose amax amin angle any append apply_along_axis apply_over_axes "
            "arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort "
            "argwhere around array array_equal array_equiv asarray asin asinh astype atan atan2 atanh bartlett "
            "bfloat16 bincount bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_right_shift "
            "blackman block bool bool_ broadcast_to cbrt cdouble ceil choose clip column_stack complex128 "
            "complex64 complex_ compress concat concatenate conj conjugate convolve copy copysign corrcoef "
            "correlate cos cosh count_nonzero cov cross csingle cumprod cumsum cumulative_prod cumulative_sum "
            "deg2rad degrees delete diag diagflat diagonal diff digitize divide dot double dstack ediff1d einsum "
            "empty empty_like equal exp exp2 expand_dims expm1 extract eye fabs fill_diagonal flatnonzero flip "
            "fliplr flipud float16 float32 float4_e2m1fn float64 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz "
            "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ float_power floor "
            "floor_divide fmax fmin fmod from_dlpack frombuffer fromfile fromfunction fromiter fromstring full "
            "full_like gcd geomspace greater greater_equal hamming hanning heaviside histogram_bin_edges hstack "
            "hypot i0 identity imag inner insert int16 int2 int32 int4 int64 int8 int_ interp invert isclose "
            "iscomplex isfinite isin isinf isnan isneginf isposinf isreal kaiser kron lcm ldexp left_shift less "
            "less_equal lexsort load log log10 log1p log2 logical_not logspace matmul matrix_transpose matvec max "
            "mean median min mod moveaxis nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean "
            "nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar negative nextafter not_equal "
            "ones ones_like outer packbits pad partition percentile permute_dims piecewise place poly polyadd "
            "polyder polyint polymul polysub polyval positive pow power prod ptp put put_along_axis quantile "
            "rad2deg radians ravel ravel_multi_index real reciprocal remainder repeat reshape resize right_shift "
            "rint roll rollaxis roots rot90 round searchsorted select setdiff1d setxor1d sign signbit sin sinc "
            "single sinh sort sort_complex spacing sqrt square squeeze stack std sum swapaxes take "
            "take_along_axis tan tanh tensordot tile trace transpose trapezoid tri tril trim_zeros triu "
            "true_divide trunc uint uint16 uint2 uint32 uint4 uint64 uint8 union1d unique_values unpackbits "
            "unwrap vander var vdot vecdot vecmat vstack zeros zeros_like"
        ),
    ),
    (
        "jax.numpy",
        "array,array",
        (
            "divmod frexp histogram modf polydiv tril_indices tril_indices_from triu_indices triu_indices_from "
            "unique_counts unique_inverse"
        ),
    ),
    ("jax.numpy", "array,array,array", "histogram2d"),
    ("jax.numpy", "array,array,array,array", "unique_all"),
    ("jax.numpy", "list", "array_split broadcast_arrays dsplit hsplit meshgrid split vsplit"),
    ("jax.numpy", "plain", "iscomplexobj isdtype isrealobj isscalar issubdtype ndim result_type size"),
    ("jax.numpy", "shape", "shape"),
    ("jax.numpy", "tuple", "diag_indices diag_indices_from ix_ mask_indices nonzero unravel_index unstack"),
    (
        "jax.numpy",
        "ufunc",
        (
            "add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and logical_or logical_xor "
            "maximum minimum multiply subtract"
        ),
    ),
    (
        "jax.numpy.fft",
        "array",
        (
            "fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 "
            "rfftfreq rfftn"
        ),
    ),
    (
        "jax.numpy.linalg",
        "array",
        (
            "cholesky cond cross det diagonal eigvals eigvalsh inv matmul matrix_norm matrix_power matrix_rank "
            "matrix_transpose multi_dot norm outer pinv solve svdvals tensordot tensorinv tensorsolve trace "
            "vecdot vector_norm"
        ),
    ),
    ("jax.numpy.linalg", "array,array", "eig eigh slogdet"),
    ("jax.numpy.linalg", "array,array,array,array", "lstsq"),
    ("jax.ops", "array", "segment_max segment_min segment_prod segment_sum"),
    (
        "jax.random",
        "array",
        (
            "PRNGKey ball bernoulli beta binomial bits categorical cauchy chisquare choice clone dirichlet "
            "double_sided_maxwell exponential f fold_in gamma generalized_normal geometric gumbel key key_data "
            "laplace loggamma logistic lognormal maxwell multinomial multivariate_normal normal orthogonal pareto "
            "permutation poisson rademacher randint rayleigh split t triangular truncated_normal uniform wald "
            "weibull_min wrap_key_data"
        ),
    ),
    ("jax.scipy.fft", "array", "dct dctn idct idctn"),
    (
        "jax.scipy.linalg",
        "array",
        (
            "block_diag cho_solve cholesky circulant companion convolution_matrix det dft expm fiedler "
            "fiedler_companion hadamard hankel helmert hilbert inv invhilbert invpascal leslie lu_solve pascal "
            "solve solve_sylvester solve_triangular sqrtm toeplitz"
        ),
    ),
    ("jax.scipy.linalg", "array,array", "lu_factor polar rsf2csf schur"),
    ("jax.scipy.ndimage", "array", "map_coordinates"),
    ("jax.scipy.signal", "array", "convolve convolve2d correlate correlate2d detrend fftconvolve"),
    ("jax.scipy.signal", "array,array", "csd istft welch"),
    ("jax.scipy.signal", "array,array,array", "stft"),
    (
        "jax.scipy.special",
        "array",
        (
            "bernoulli bessel_jn beta betainc betaln boxcox boxcox1p comb dawsn digamma entr erf erfc erfcx "
            "erfinv exp1 expi expit expn factorial gamma gammainc gammaincc gammaln gammasgn hyp1f1 hyp2f1 i0 i0e "
            "i1 i1e kl_div log_ndtr log_softmax loggamma logit multigammaln ndtr ndtri owens_t poch polygamma "
            "rel_entr softmax spence sph_harm_y wofz xlog1py xlogy zeta"
        ),
    ),
    ("jax.scipy.special", "array,array", "fresnel sici"),
    ("jax.scipy.stats.norm", "array", "cdf isf logcdf logpdf logsf pdf ppf sf"),
)
"""Module, kind of result, names."""

PROPERTIES: dict[str, str] = {
    "T": "array",
    "committed": "plain",
    "dtype": "plain",
    "imag": "array",
    "is_fully_addressable": "plain",
    "is_fully_replicated": "plain",
    "itemsize": "plain",
    "mT": "array",
    "nbytes": "plain",
    "ndim": "plain",
    "real": "array",
    "shape": "shape",
    "size": "plain",
    "weak_type": "plain",
}
"""Kinds of the properties of an array."""

METHODS: dict[str, str] = {
    "addressable_data": "array",
    "all": "array",
    "any": "array",
    "argmax": "array",
    "argmin": "array",
    "argpartition": "array",
    "argsort": "array",
    "astype": "array",
    "block_until_ready": "array",
    "byteswap": "array",
    "choose": "array",
    "clip": "array",
    "compress": "array",
    "conj": "array",
    "conjugate": "array",
    "copy": "array",
    "cumprod": "array",
    "cumsum": "array",
    "diagonal": "array",
    "dot": "array",
    "flatten": "array",
    "is_deleted": "plain",
    "max": "array",
    "mean": "array",
    "min": "array",
    "nonzero": "tuple",
    "on_device_size_in_bytes": "plain",
    "platform": "plain",
    "prod": "array",
    "ptp": "array",
    "ravel": "array",
    "repeat": "array",
    "reshape": "array",
    "round": "array",
    "searchsorted": "array",
    "sort": "array",
    "squeeze": "array",
    "std": "array",
    "sum": "array",
    "swapaxes": "array",
    "take": "array",
    "to_device": "array",
    "trace": "array",
    "transpose": "array",
    "unsafe_buffer_pointer": "plain",
    "var": "array",
    "view": "array",
}
"""Kinds of the results of the methods of an array."""

RESULTS: dict[str, str] = {f"{module}.{name}": kind for module, kind, row in _ROWS for name in row.split()}

OVERLOADS: dict[str, tuple[tuple[int | None, tuple[tuple[int, str, object], ...], str | None], ...]] = {
    "jax.lax.broadcast_shapes": (
        (None, (), "shape"),
        (None, (), None),
    ),
    "jax.lax.linalg.qr": (
        (1, ((-1, "pivoting", (False,)),), "array,array"),
        (1, ((-1, "pivoting", "required"), (-1, "pivoting", (True,))), "array,array,array"),
        (1, (), None),
    ),
    "jax.lax.linalg.svd": (
        (1, ((-1, "compute_uv", (True,)),), "array,array,array"),
        (1, ((-1, "compute_uv", "required"), (-1, "compute_uv", (False,))), "array"),
        (1, (), None),
    ),
    "jax.lax.sort": (
        (4, ((0, "operand", "array"),), "array"),
        (4, ((0, "operand", "sequence"),), "tuple"),
    ),
    "jax.nn.dot_product_attention": (
        (5, ((-1, "return_residual", (False,)),), "array"),
        (5, ((-1, "return_residual", (True,)),), "array,array"),
    ),
    "jax.nn.logsumexp": (
        (6, ((4, "return_sign", (False,)),), "array"),
        (4, ((-1, "return_sign", "required"), (-1, "return_sign", (True,))), "array,array"),
        (6, (), None),
    ),
    "jax.numpy.atleast_1d": (
        (0, (), "list"),
        (1, ((0, "x", "required"), (0, "x", "array")), "array"),
        (None, ((0, "x", "required"), (0, "x", "array"), (1, "y", "required"), (1, "y", "array")), "list"),
    ),
    "jax.numpy.atleast_2d": (
        (0, (), "list"),
        (1, ((0, "x", "required"), (0, "x", "array")), "array"),
        (None, ((0, "x", "required"), (0, "x", "array"), (1, "y", "required"), (1, "y", "array")), "list"),
    ),
    "jax.numpy.atleast_3d": (
        (0, (), "list"),
        (1, ((0, "x", "required"), (0, "x", "array")), "array"),
        (None, ((0, "x", "required"), (0, "x", "array"), (1, "y", "required"), (1, "y", "array")), "list"),
    ),
    "jax.numpy.average": (
        (5, ((3, "returned", (False,)),), "array"),
        (3, ((-1, "returned", "required"), (-1, "returned", (True,))), "array,array"),
        (5, (), None),
    ),
    "jax.numpy.broadcast_shapes": (
        (None, (), "shape"),
        (None, (), None),
    ),
    "jax.numpy.indices": (
        (3, ((2, "sparse", (False,)),), "array"),
        (2, ((-1, "sparse", "required"), (-1, "sparse", (True,))), "tuple"),
        (3, (), None),
    ),
    "jax.numpy.linalg.qr": (
        (2, ((1, "mode", ("reduced", "complete", "raw", "full")),), "array,array"),
        (2, ((1, "mode", "required"), (1, "mode", ("r",))), "array"),
        (2, ((1, "mode", "required"),), None),
    ),
    "jax.numpy.linalg.svd": (
        (2, ((-1, "compute_uv", (True,)),), "array,array,array"),
        (5, ((1, "full_matrices", "required"), (2, "compute_uv", (True,))), "array,array,array"),
        (2, ((-1, "compute_uv", "required"), (-1, "compute_uv", (False,))), "array"),
        (5, ((1, "full_matrices", "required"), (2, "compute_uv", "required"), (2, "compute_uv", (False,))), "array"),
        (5, (), None),
    ),
    "jax.numpy.linspace": (
        (7, ((4, "retstep", (False,)),), "array"),
        (
            7,
            ((2, "num", "required"), (3, "endpoint", "required"), (4, "retstep", "required"), (4, "retstep", (True,))),
            "array,array",
        ),
        (4, ((-1, "retstep", "required"), (-1, "retstep", (True,))), "array,array"),
        (7, (), None),
    ),
    "jax.numpy.where": (
        (1, (), "tuple"),
        (3, ((1, "x", "required"), (1, "x", "array"), (2, "y", "required"), (2, "y", "array")), "array"),
    ),
    "jax.scipy.linalg.eigh": (
        (10, ((3, "eigvals_only", (False,)), (7, "eigvals", (None,))), "array,array"),
        (3, ((-1, "eigvals_only", "required"), (-1, "eigvals_only", (True,)), (-1, "eigvals", (None,))), "array"),
        (
            10,
            (
                (1, "b", "required"),
                (2, "lower", "required"),
                (3, "eigvals_only", "required"),
                (3, "eigvals_only", (True,)),
                (7, "eigvals", (None,)),
            ),
            "array",
        ),
        (10, ((7, "eigvals", (None,)),), None),
    ),
    "jax.scipy.linalg.expm_frechet": (
        (2, ((-1, "compute_expm", (True,)),), "array,array"),
        (2, ((-1, "compute_expm", "required"), (-1, "compute_expm", (False,))), "array"),
        (2, (), None),
    ),
    "jax.scipy.linalg.hessenberg": (
        (1, ((-1, "calc_q", (False,)),), "array"),
        (1, ((-1, "calc_q", (True,)),), "array,array"),
    ),
    "jax.scipy.linalg.lu": (
        (4, ((1, "permute_l", (False,)),), "array,array,array"),
        (4, ((1, "permute_l", "required"), (1, "permute_l", (True,))), "array,array"),
        (4, (), None),
    ),
    "jax.scipy.linalg.qr": (
        (3, ((-1, "mode", ("full", "economic")), (-1, "pivoting", (False,))), "array,array"),
        (3, ((-1, "mode", ("full", "economic")), (-1, "pivoting", (True,))), "array,array,array"),
        (3, ((-1, "mode", ("full", "economic")),), None),
        (3, ((-1, "mode", "required"), (-1, "mode", ("r",)), (-1, "pivoting", (False,))), "array"),
        (3, ((-1, "mode", "required"), (-1, "mode", ("r",)), (-1, "pivoting", (True,))), "array,array"),
        (3, ((-1, "mode", "required"), (-1, "mode", ("r",))), None),
        (6, (), None),
    ),
    "jax.scipy.linalg.qr_multiply": (
        (7, ((3, "pivoting", (False,)),), "array,array"),
        (7, ((3, "pivoting", (True,)),), "array,array,array"),
        (7, (), None),
    ),
    "jax.scipy.linalg.svd": (
        (6, ((2, "compute_uv", (True,)),), "array,array,array"),
        (6, ((1, "full_matrices", "required"), (2, "compute_uv", "required"), (2, "compute_uv", (False,))), "array"),
        (2, ((-1, "compute_uv", "required"), (-1, "compute_uv", (False,))), "array"),
        (6, (), None),
    ),
}
"""By name, in order: number of positional arguments, conditions (position, keyword, what is asked), kind."""
