"""The texts of `_hints`: how to write here what PyTorch, NumPy and JAX call by names that xpgrad lacks, and why some names are missing.

The module loads at the first missing name. Names that are methods or functions elsewhere in xpgrad need no text: `_hints` finds them.
"""

from __future__ import annotations

#: A line is a name, or several separated by spaces, a colon, and what to write; a name may begin with a module, or with `Tensor`:
#: ``linalg.norm``. Calls and attributes in backticks exist; words outside of them explain. Indented lines continue the one before.
TEXTS: str = """
array: `xpgrad.asarray(data)`, or `xpgrad.tensor(data)`, which copies
absolute fabs: `xpgrad.abs`
power float_power: `xpgrad.pow`
integer_pow: `xpgrad.pow`
true_divide div: `xpgrad.divide`
mod: `xpgrad.remainder`
fmod rem: `xpgrad.remainder`, which has the sign of the divisor
conjugate conj_physical resolve_conj: `xpgrad.conj`
arcsin: `xpgrad.asin`
arccos: `xpgrad.acos`
arctan: `xpgrad.atan`
arctan2: `xpgrad.atan2`
arcsinh: `xpgrad.asinh`
arccosh: `xpgrad.acosh`
arctanh: `xpgrad.atanh`
invert bitwise_not: `xpgrad.bitwise_invert`
left_shift shift_left: `xpgrad.bitwise_left_shift`
right_shift shift_right_arithmetic: `xpgrad.bitwise_right_shift`
concatenate cat: `xpgrad.concat`
hstack: `xpgrad.concat(arrays, axis=1)`, with `axis=0` for vectors
vstack row_stack: `xpgrad.concat(arrays, axis=0)`, or `xpgrad.stack` for rows
dstack: `xpgrad.stack(arrays, axis=2)` for matrices
column_stack: `xpgrad.stack(columns, axis=1)`
append: `xpgrad.concat([x, values], axis=0)`
insert: `xpgrad.concat([x[:i], values, x[i:]], axis=0)`
delete: `x[keep]` with a mask of the elements to keep
swapaxes swapdims: `x.transpose(axis1, axis2)`, or `xpgrad.permute_dims`
rollaxis movedim: `xpgrad.moveaxis`
adjoint: `xpgrad.conj(x.mT)`
H mH: `xpgrad.conj(x.mT)`
cumsum: `xpgrad.cumulative_sum(x, axis=0)`
cumprod: `xpgrad.cumulative_prod(x, axis=0)`
amax reduce_max: `xpgrad.max`
amin reduce_min: `xpgrad.min`
aminmax: `xpgrad.min` and `xpgrad.max`
reduce_sum: `xpgrad.sum`
reduce_prod: `xpgrad.prod`
reduce_and: `xpgrad.all`
reduce_or: `xpgrad.any`
average: `xpgrad.mean`, or `xpgrad.sum(x * weights) / xpgrad.sum(weights)`
median: `x.median()`, or the middle of `xpgrad.sort`
ptp: `xpgrad.max(x) - xpgrad.min(x)`
std_mean var_mean: `xpgrad.var`, or `xpgrad.std`, and `xpgrad.mean`
unique: `xpgrad.unique_values`, or `xpgrad.unique_all` with counts and indices
flatnonzero: `xpgrad.nonzero`
argwhere: `xpgrad.stack(xpgrad.nonzero(x), axis=1)`
take_along_dim: `xpgrad.take_along_axis`
identity: `xpgrad.eye`
asanyarray ascontiguousarray: `xpgrad.asarray`, and `x.contiguous()` for row-major order
copy clone alias_copy detach_copy: `x.clone()`, or `xpgrad.asarray(x, copy=True)`
array_equal: `xpgrad.all(x == y)`
array_equiv: `xpgrad.all(x == y)`
dot: `xpgrad.matmul`, `x @ y`; `xpgrad.vecdot` for vectors
inner vdot: `xpgrad.vecdot`
mm bmm mv matvec vecmat batch_matmul: `xpgrad.matmul`, `x @ y`
linalg.multi_dot chain_matmul: `x @ y @ z`, or `xpgrad.einsum`
addmm addmv: `xpgrad.matmul` and `+`, as in `a + x @ y`
addcmul: `x + value * a * b`, with `xpgrad.multiply` for raw arrays
addcdiv: `x + value * a / b`, with `xpgrad.divide` for raw arrays
lerp: `x + weight * (y - x)`, with `xpgrad.subtract` for raw arrays
trace: `xpgrad.linalg.trace`
diag: `xpgrad.linalg.diagonal`, which takes a diagonal; `xpgrad.eye(n) * v` makes a matrix with one
diagflat diag_embed: `xpgrad.eye(n) * v`
norm linalg.norm: `xpgrad.linalg.vector_norm`, `xpgrad.linalg.matrix_norm`, or `x.norm()`
frobenius_norm: `xpgrad.linalg.matrix_norm`
nuclear_norm: `xpgrad.linalg.matrix_norm(x, ord='nuc')`
linalg.cond: `xpgrad.linalg.matrix_norm(x, ord=2) * xpgrad.linalg.matrix_norm(xpgrad.linalg.inv(x), ord=2)`
linalg.lstsq lstsq: `xpgrad.scipy.linalg.lstsq`, or `xpgrad.linalg.pinv(A) @ b`
linalg.matrix_exp matrix_exp: `xpgrad.scipy.linalg.expm`
linalg.solve_triangular triangular_solve: `xpgrad.scipy.linalg.solve_triangular`
linalg.lu linalg.lu_factor linalg.lu_solve lu: `xpgrad.linalg.solve`, or `xpgrad.linalg.qr`
linalg.cholesky_ex: `xpgrad.linalg.cholesky`
linalg.inv_ex inverse: `xpgrad.linalg.inv`
linalg.solve_ex: `xpgrad.linalg.solve`
linalg.tensorsolve: `xpgrad.linalg.solve` of reshaped operands
linalg.tensorinv: `xpgrad.linalg.inv` of a reshaped operand
linalg.LinAlgError: the library's own error, such as `numpy.linalg.LinAlgError`; see `xpgrad.linalg`
cholesky_solve: `xpgrad.scipy.linalg.cho_solve`
logdet: `xpgrad.linalg.slogdet`
pinverse: `xpgrad.linalg.pinv`
symeig: `xpgrad.linalg.eigh`
ger: `xpgrad.linalg.outer`
block_diag: `xpgrad.scipy.linalg.block_diag`
scipy.sparse.coo_matrix: `xpgrad.scipy.sparse.coo_array`
scipy.sparse.csr_matrix: `xpgrad.scipy.sparse.csr_array`
scipy.sparse.csc_matrix: `xpgrad.scipy.sparse.csc_array`
scipy.sparse.diags: `xpgrad.scipy.sparse.diags_array`
scipy.sparse.eye_array scipy.sparse.kron scipy.sparse.hstack scipy.sparse.vstack scipy.sparse.block_array: SciPy's own, for constant
     matrices, whose products with Tensors are differentiable
scipy.sparse.linalg.splu: `xpgrad.scipy.sparse.linalg.factorized`
scipy.sparse.linalg.cg scipy.sparse.linalg.gmres scipy.sparse.linalg.bicgstab scipy.sparse.linalg.minres:
     `xpgrad.scipy.sparse.linalg.spsolve`, or `xpgrad.scipy.optimize.custom_root` with an iteration of your own
kron: `xpgrad.einsum('ij,kl->ikjl', A, B)`, reshaped
fft.fft2: `xpgrad.fft.fftn(x, axes=(-2, -1))`
fft.ifft2: `xpgrad.fft.ifftn(x, axes=(-2, -1))`
fft.rfft2: `xpgrad.fft.rfftn(x, axes=(-2, -1))`
fft.irfft2: `xpgrad.fft.irfftn(x, axes=(-2, -1))`
float_ double: `xpgrad.float64`
single: `xpgrad.float32`
half: `xpgrad.float16`
int_ intp long longlong: `xpgrad.int64`
intc int: `xpgrad.int32`
short: `xpgrad.int16`
byte: `xpgrad.int8`
ubyte: `xpgrad.uint8`
ushort: `xpgrad.uint16`
uint uintc uintp ulong ulonglong: `xpgrad.uint64`, or `xpgrad.uint32`
bool_: `xpgrad.bool`
cdouble complex_: `xpgrad.complex128`
csingle cfloat: `xpgrad.complex64`
dtype: `xpgrad.float64` and its like, and `x.dtype`
float: `xpgrad.float32`, or `xpgrad.float64`
ndarray Array: `xpgrad.Tensor`
promote_types: `xpgrad.result_type`
issubdtype: `xpgrad.isdtype`
set_default_dtype set_default_tensor_type: `dtype=` in `xpgrad.asarray` and other functions: the device decides on the default dtype
get_default_dtype: `xpgrad.asarray(0.0).dtype`
save savez savez_compressed: `numpy.save(file, x.numpy())`, or `pickle.dump(x, file)`
load: `xpgrad.asarray(numpy.load(file))`, or `pickle.load(file)`
from_numpy: `xpgrad.asarray(array)`, which shares its memory
as_tensor scalar_tensor: `xpgrad.asarray(data)`
sigmoid logistic: `x.sigmoid()`
relu: `x.relu()`, or `xpgrad.maximum(x, 0)`, which differs at 0
relu6: `xpgrad.clip(x, 0, 6)`
hard_tanh hardtanh: `xpgrad.clip(x, -1, 1)`
leaky_relu: `xpgrad.where(x >= 0, x, 0.01 * x)`
elu: `xpgrad.where(x > 0, x, xpgrad.expm1(x))`
celu: `xpgrad.where(x > 0, x, xpgrad.expm1(x))`
softplus: `xpgrad.logaddexp(x, 0)`
log_sigmoid logsigmoid: `-xpgrad.logaddexp(-x, 0)`
silu swish: `x * x.sigmoid()`
mish: `x * xpgrad.tanh(xpgrad.logaddexp(x, 0))`
gelu: `x * xpgrad.scipy.special.ndtr(x)`
soft_sign softsign: `x / (1 + xpgrad.abs(x))`
tanhshrink: `x - xpgrad.tanh(x)`
softmin: `(-x).softmax(dim)`
softmax: `x.softmax(dim)`
log_softmax: `x.log_softmax(dim)`
logsumexp: `x.logsumexp(dim)`
one_hot: `xpgrad.astype(x[..., None] == xpgrad.arange(n), xpgrad.float64)`
mse_loss: `xpgrad.mean((x - y) ** 2)`
l1_loss: `xpgrad.mean(xpgrad.abs(x - y))`
cross_entropy: `-logits.log_softmax(1).gather(1, target[:, None]).mean()`, with `x.log_softmax` and `x.gather`
linear: `x @ weight.T + bias`, with `xpgrad.matmul` for raw arrays
normalize: `x / xpgrad.linalg.vector_norm(x, axis=1, keepdims=True)`
cosine_similarity: `xpgrad.vecdot(x, y) / (xpgrad.linalg.vector_norm(x, axis=-1) * xpgrad.linalg.vector_norm(y, axis=-1))`
clamp clamp_min clamp_max: `xpgrad.clip`
neg: `xpgrad.negative`
sub: `xpgrad.subtract`
rsub: `y - x`, `xpgrad.subtract`
mul: `xpgrad.multiply`
eq: `xpgrad.equal`
ne: `xpgrad.not_equal`
lt: `xpgrad.less`
le: `xpgrad.less_equal`
gt: `xpgrad.greater`
ge: `xpgrad.greater_equal`
fmax: `xpgrad.maximum`, which returns nan if either operand is
fmin: `xpgrad.minimum`, which returns nan if either operand is
fix: `xpgrad.trunc(x)`
rint around: `xpgrad.round(x)`
frac: `x - xpgrad.trunc(x)`
modf: `xpgrad.trunc(x)` and `x - xpgrad.trunc(x)`
divmod: `xpgrad.floor_divide(x, y)` and `xpgrad.remainder(x, y)`
exp2: `xpgrad.pow(2.0, x)`
cbrt: `xpgrad.sign(x) * xpgrad.pow(xpgrad.abs(x), 1 / 3)`
rsqrt: `1 / xpgrad.sqrt(x)`
deg2rad radians: `x * (xpgrad.pi / 180)`
rad2deg degrees: `x * (180 / xpgrad.pi)`
angle: `xpgrad.atan2(xpgrad.imag(z), xpgrad.real(z))`
sgn: `xpgrad.sign(x)`
polar: `r * xpgrad.exp(1j * angle)`
complex: `real + 1j * imag`, with `xpgrad.asarray` for raw arrays
logaddexp2: `xpgrad.logaddexp(x * xpgrad.log(2.0), y * xpgrad.log(2.0)) / xpgrad.log(2.0)`
ldexp: `x * xpgrad.pow(2.0, y)`
logit: `xpgrad.scipy.special.logit`
heaviside: `xpgrad.where(x == 0, y, xpgrad.astype(x > 0, x.dtype))`
nan_to_num: `xpgrad.where(xpgrad.isnan(x), 0.0, x)`
isposinf: `x == xpgrad.inf`
isneginf: `x == -xpgrad.inf`
isreal: `xpgrad.imag(x) == 0`
iscomplex: `xpgrad.imag(x) != 0`
is_finite: `xpgrad.isfinite`
iscomplexobj isrealobj: `x.is_complex()`
nansum: `xpgrad.sum(xpgrad.where(xpgrad.isnan(x), 0.0, x))`
nanprod: `xpgrad.prod(xpgrad.where(xpgrad.isnan(x), 1.0, x))`
nanmax: `xpgrad.max(xpgrad.where(xpgrad.isnan(x), -xpgrad.inf, x))`
nanmin: `xpgrad.min(xpgrad.where(xpgrad.isnan(x), xpgrad.inf, x))`
nanmean: `xpgrad.mean(x[~xpgrad.isnan(x)])`
permute: `xpgrad.permute_dims`
unsqueeze: `xpgrad.expand_dims`
unbind: `xpgrad.unstack`
atleast_1d: `xpgrad.reshape(x, (-1,))` for a number
atleast_2d: `x[None, :]` for a vector, or `xpgrad.expand_dims`
atleast_3d: `x[None, :, None]` for a vector, or `xpgrad.expand_dims`
flatten ravel: `x.flatten()`, or `xpgrad.reshape(x, (-1,))`
unflatten resize: `xpgrad.reshape`
fliplr: `xpgrad.flip(A, axis=1)`
flipud rev: `xpgrad.flip(x, axis=0)`
rot90: `xpgrad.flip(A.T, axis=0)`
t: `x.T`, or `xpgrad.permute_dims`
split chunk tensor_split array_split hsplit vsplit dsplit split_with_sizes: slices, such as `x[:2]` and `x[2:]`, or `xpgrad.unstack`
narrow slice slice_in_dim select: a slice, such as `x[:, 2:5]`, or `xpgrad.take`
repeat_interleave: `xpgrad.repeat`
broadcast_tensors: `xpgrad.broadcast_arrays`
topk top_k: `xpgrad.flip(xpgrad.sort(x))[:k]`, or `x.sort(descending=True)` with indices
msort: `xpgrad.sort(x, axis=0)`
kthvalue: `xpgrad.sort(x)[k - 1]`
gather: `x.gather(dim, index)`, or `xpgrad.take_along_axis`
scatter_add index_add: `x.scatter_add(dim, index, src)`, or `x.index_add_(dim, index, source)`
index_select: `xpgrad.take`
index_put put: `x[indices] = values`, on `x.clone()`
masked_select extract compress: `x[mask]`, or `x.masked_select(mask)`
masked_fill: `xpgrad.where(mask, value, x)`
index_fill fill_diagonal index_copy masked_scatter scatter putmask place: `x[key] = value`, on `x.clone()`
numel: `x.size`, or `x.numel()`
shape: `x.shape`
ndim ndimension: `x.ndim`
size: `x.size`, or `x.shape`
is_tensor: `isinstance(x, xpgrad.Tensor)`
isscalar: `x.ndim == 0`
logspace: `xpgrad.pow(10.0, xpgrad.linspace(a, b, n))`
geomspace: `xpgrad.exp(xpgrad.linspace(xpgrad.log(a), xpgrad.log(b), n))`
tri: `xpgrad.tril(xpgrad.ones((n, n)))`
vander: `xpgrad.pow(x[:, None], xpgrad.arange(n))`
trapezoid trapz: `xpgrad.scipy.integrate.trapezoid`
cumulative_trapezoid: `xpgrad.scipy.integrate.cumulative_trapezoid`
convolve: `xpgrad.scipy.signal.convolve`
correlate: `xpgrad.scipy.signal.correlate`
interp: `xpgrad.scipy.interpolate.interp1d`
cov: `d.T @ d / (n - 1)` of the deviations d = `x - xpgrad.mean(x, axis=0)`
ediff1d: `xpgrad.diff(x)`
polyval: `xpgrad.vecdot(p, xpgrad.pow(x, xpgrad.arange(n)))`, lowest power first
cdist: `xpgrad.linalg.vector_norm(x[:, None, :] - y[None, :, :], axis=-1)`
lgamma: `xpgrad.scipy.special.gammaln`
digamma: `xpgrad.scipy.special.digamma`
polygamma: `xpgrad.scipy.special.polygamma`
erf: `xpgrad.scipy.special.erf`
erfc: `xpgrad.scipy.special.erfc`
erfinv erf_inv: `xpgrad.scipy.special.erfinv`
xlogy: `xpgrad.scipy.special.xlogy`
i0: `xpgrad.scipy.special.i0`
igamma: `xpgrad.scipy.special.gammainc`
igammac: `xpgrad.scipy.special.gammaincc`
mvlgamma: `xpgrad.scipy.special.multigammaln`
betainc: `xpgrad.scipy.special.betainc`
zeta: `xpgrad.scipy.special.zeta`
sinc: `xpgrad.scipy.special.sinc`
random rand randint randperm: `xpgrad.asarray(rng.random(shape))` with a generator of NumPy's: xpgrad has no random numbers
randn normal: `xpgrad.asarray(rng.normal(size=shape))` with a generator of NumPy's: xpgrad has no random numbers
manual_seed seed: a generator of NumPy's with a seed, and `xpgrad.asarray` for what it draws: xpgrad has no random numbers
nn: `xpgrad.func.functional_call` and your own objects that hold Tensors: xpgrad has no layers
optim: your own loop, or `xpgrad.autograd.interop.scipy_objective`: xpgrad has no optimizers
cuda mps xpu: `x.to(device)`; `xpgrad.default_device(name)` and `device=` choose a device
cpu: `x.to('numpy')`, or `x.numpy()` for a NumPy array
device: `xpgrad.Device`, and `x.device`
amp autocast: `xpgrad.astype(x, xpgrad.float16)` where it helps: xpgrad does not change dtypes on its own
jit: `xpgrad.compile`
vmap: `xpgrad.func.vmap`
jacobian: `xpgrad.func.jacrev`, or `xpgrad.func.jacfwd`
grad: `xpgrad.func.grad` of a function, or `xpgrad.autograd.grad` of Tensors
pmap: `xpgrad.func.vmap`
vectorize: `xpgrad.func.vmap`
map: `xpgrad.func.vmap`, or a loop
switch: `xpgrad.func.cond`, or Python's `if`
checkpoint remat: `xpgrad.utils.checkpoint.checkpoint`
custom_vjp custom_jvp custom_gradient: `xpgrad.autograd.custom_rule`
stop_gradient: `x.detach()`
linear_transpose: `xpgrad.func.vjp`
eval_shape make_jaxpr: `xpgrad.compile`, and `program(*args)` of what it returns
custom_root: `xpgrad.scipy.optimize.custom_root`
device_put: `x.to(device)`
device_get: `x.numpy()`
block_until_ready: `x.numpy()`, which waits for the value
debug_nans: `xpgrad.audit`
lax: `xpgrad.func`: `xpgrad.func.scan`, `xpgrad.func.cond`, `xpgrad.func.while_loop`; the rest is in `xpgrad` itself
numpy: the package itself, `xpgrad.asarray` and its functions, or `xpgrad.dialects.hips` for programs of HIPS autograd
at: `x[key] = value` on `x.clone()`: Tensors can be written to
type: `x.dtype`, or `x.to(dtype)`
char: `x.to(xpgrad.int8)`
strides: `x.stride()`, in elements
is_contiguous: `x.contiguous()`, which copies if it must
data_ptr untyped_storage storage: `x.array`, the raw array, and its library's own functions
tobytes tofile dump dumps: `x.numpy()` and its methods
fill: `x.fill_(value)`
copyto: `x.copy_(y)`
reshape_as: `x.reshape(y.shape)`
get_device: `x.device`
flat: `x.flatten()`
base: `x.array`, the raw array
set_printoptions get_printoptions printoptions: NumPy's own, and `xpgrad.asarray(x)`, which prints with them
addbmm: `a + xpgrad.sum(x @ y, axis=0)`
addr: `a + xpgrad.linalg.outer(x, y)`
apply_along_axis: `xpgrad.func.vmap`
apply_over_axes: the function with `axis=(0, 1)`, as in `xpgrad.sum(x, axis=(0, 1))`
argpartition: `xpgrad.argsort`
partition: `xpgrad.sort`
lexsort: `xpgrad.argsort`, stable, once per key, the last key first
sort_complex: `xpgrad.sort` of `xpgrad.real(x)`: complex numbers have no order
sort_key_val: `order = xpgrad.argsort(keys)`, then `keys[order]` and `values[order]`
as_strided: slices, `xpgrad.reshape` and `xpgrad.permute_dims`
bincount: `xpgrad.zeros(n).scatter_add(0, x, weights)`, with `x.scatter_add`
histc histogram histogram_bin_edges: `xpgrad.searchsorted(edges, x)`, then `x.scatter_add` of ones
histogram2d histogramdd: `xpgrad.searchsorted` along each axis, then `x.scatter_add` of ones
digitize bucketize: `xpgrad.searchsorted(bins, x)`
bitcast_convert_type: `xpgrad.asarray(x.numpy().view(dtype))`, which is not recorded
block bmat: `xpgrad.concat([xpgrad.concat(row, axis=1) for row in rows], axis=0)`
broadcast broadcast_in_dim broadcast_like broadcast_to_rank: `xpgrad.broadcast_to`, or `xpgrad.broadcast_shapes`
broadcasted_iota iota range: `xpgrad.arange(n)`
indices mgrid ogrid: `xpgrad.meshgrid(xpgrad.arange(m), xpgrad.arange(n), indexing='ij')`
ix_: `x[rows[:, None], columns]`
cartesian_prod: `xpgrad.meshgrid(x, y, indexing='ij')`, flattened and stacked
c_: `xpgrad.stack(columns, axis=1)`
r_: `xpgrad.concat`
s_ index_exp ds: Python's `slice`, as in `x[slice(2, 5)]`
choose: `xpgrad.where`, or `xpgrad.stack(choices)` and `xpgrad.take_along_axis`
select_n piecewise: `xpgrad.where`, once per condition
cholesky_inverse: `xpgrad.linalg.inv(L @ L.T)`
bessel_i0e: `xpgrad.scipy.special.i0e`
bessel_i1e: `xpgrad.scipy.special.i1e`
collapse: `x.flatten(start_dim, end_dim)`
constant_pad_nd: `xpgrad.pad`
copy_to_host_async: `x.numpy()`
corrcoef: the covariance `d.T @ d` of the standardised columns d = `(x - xpgrad.mean(x, axis=0)) / xpgrad.std(x, axis=0)`
cumlogsumexp logcumsumexp: `xpgrad.log(xpgrad.cumulative_sum(xpgrad.exp(x - xpgrad.max(x)))) + xpgrad.max(x)`
cummax cummin: `xpgrad.stack([xpgrad.max(x[:i]) for i in range(1, n + 1)])`, or `xpgrad.func.scan`
associative_scan: `xpgrad.func.scan`, or `xpgrad.cumulative_sum`
reduce: `xpgrad.sum`, `xpgrad.max` and other reductions, or `xpgrad.func.scan`
nancumsum: `xpgrad.cumulative_sum(xpgrad.where(xpgrad.isnan(x), 0.0, x))`
nancumprod: `xpgrad.cumulative_prod(xpgrad.where(xpgrad.isnan(x), 1.0, x))`
nanargmax: `xpgrad.argmax(xpgrad.where(xpgrad.isnan(x), -xpgrad.inf, x))`
nanargmin: `xpgrad.argmin(xpgrad.where(xpgrad.isnan(x), xpgrad.inf, x))`
nanmedian: `x[~xpgrad.isnan(x)].median()`, with `x.median`
nanstd: `xpgrad.std(x[~xpgrad.isnan(x)])`
nanvar: `xpgrad.var(x[~xpgrad.isnan(x)])`
percentile quantile nanpercentile nanquantile: two elements of `xpgrad.sort(x)`, weighted: xpgrad has no quantiles
mode: `xpgrad.unique_counts(x)`, whose values have counts
custom_linear_solve: `xpgrad.linalg.solve`, or `xpgrad.scipy.optimize.custom_root`
debug: `print` works on Tensors: a function runs eagerly; `xpgrad.audit` looks for mistakes
debug_infs: `xpgrad.audit`
disable_jit: the function itself: without `xpgrad.compile` it runs eagerly
pure_callback: `xpgrad.autograd.custom_rule`, whose function may compute anything
diag_indices diag_indices_from: `i = xpgrad.arange(n)`, then `x[i, i]`
tril_indices tril_indices_from: `xpgrad.nonzero(xpgrad.tril(xpgrad.ones((n, n))))`
triu_indices triu_indices_from mask_indices: `xpgrad.nonzero(xpgrad.triu(xpgrad.ones((n, n))))`
dot_general: `xpgrad.einsum`, or `xpgrad.tensordot`
dynamic_slice dynamic_slice_in_dim dynamic_index_in_dim index_in_dim index_take slice_copy: `x[start:start + n]`, or `xpgrad.take`
dynamic_update_slice dynamic_update_slice_in_dim dynamic_update_index_in_dim select_scatter slice_scatter diagonal_scatter
     as_strided_scatter: `x[key] = value`, on `x.clone()`
scatter_apply scatter_max scatter_min scatter_mul scatter_sub scatter_reduce index_reduce segment_reduce put_along_axis: `x[key] =
     value`, on `x.clone()`; `x.scatter_add` for sums
empty_permuted empty_strided new_empty_strided: `xpgrad.empty`
False_: `xpgrad.asarray(False)`
True_: `xpgrad.asarray(True)`
euler_gamma: `-xpgrad.scipy.special.digamma(xpgrad.asarray(1.0))`
frombuffer: `xpgrad.asarray(numpy.frombuffer(data))`
fromfile from_file fromfunction fromiter fromstring fromregex genfromtxt loadtxt memmap: `xpgrad.asarray(array)` of the array that
     NumPy's function returns
savetxt: `numpy.savetxt(file, x.numpy())`
asfortranarray asarray_chkfinite asmatrix require: `xpgrad.asarray`
matrix: `xpgrad.asarray`, and `x @ y` for products
functionalize: `xpgrad.compile`, which handles in-place writes
closure_convert fwd_and_bwd: `xpgrad.func.vjp`
fwAD: `xpgrad.autograd.forward_ad`
is_anomaly_enabled is_anomaly_check_nan_enabled set_anomaly_enabled: `xpgrad.autograd.set_detect_anomaly`, or
     `xpgrad.autograd.detect_anomaly`
tree tree_util: `xpgrad.func.ravel_pytree`; the functions of `xpgrad.func` take dicts, lists and tuples
ad: `xpgrad.func`
glu: `a * b.sigmoid()` of the halves of x, with `x.sigmoid`
hardshrink: `xpgrad.where(xpgrad.abs(x) > 0.5, x, 0.0)`
softshrink: `xpgrad.where(xpgrad.abs(x) > 0.5, x - 0.5 * xpgrad.sign(x), 0.0)`
hard_sigmoid hardsigmoid: `xpgrad.clip(x / 6 + 0.5, 0, 1)`
hard_silu hard_swish hardswish: `x * xpgrad.clip(x / 6 + 0.5, 0, 1)`
selu: `1.0507009873554805 * xpgrad.where(x > 0, x, 1.6732632423543772 * xpgrad.expm1(x))`
squareplus: `(x + xpgrad.sqrt(x * x + 4)) / 2`
standardize: `(x - xpgrad.mean(x)) / xpgrad.sqrt(xpgrad.var(x) + 1e-05)`
threshold: `xpgrad.where(x > threshold, x, value)`
prelu: `xpgrad.where(x >= 0, x, weight * x)`
log1mexp: `xpgrad.log(-xpgrad.expm1(-x))`
logmeanexp: `x.logsumexp(0)`, less the logarithm of the number of elements
binary_cross_entropy: `-xpgrad.mean(y * xpgrad.log(x) + (1 - y) * xpgrad.log(1 - x))`
binary_cross_entropy_with_logits: `xpgrad.mean(xpgrad.logaddexp(x, 0) - x * y)`
kl_div: `xpgrad.scipy.special.kl_div`, elementwise
pairwise_distance: `xpgrad.linalg.vector_norm(x - y, axis=-1)`
pdist: `xpgrad.linalg.vector_norm(x[i] - x[j], axis=-1)` for the indices i, j of pairs
iterable: `hasattr(x, '__iter__')`, as for every `xpgrad.Tensor`
is_nonzero: `bool(x)`, or `xpgrad.any(x)`
is_signed: `not xpgrad.isdtype(x.dtype, 'unsigned integer')`
is_same_size: `x.shape == y.shape`
nelement: `x.numel()`
new: `x.new_empty(shape)`, or `xpgrad.empty`
name: `x.grad_fn.name()`, of `x.grad_fn`
values: `x.detach()`: there are no sparse Tensors
population_count bitwise_count clz: NumPy's `bitwise_count` and `xpgrad.asarray`: these bits are not differentiable
shift_right_logical: `xpgrad.bitwise_right_shift` of an unsigned dtype
unique_consecutive: `xpgrad.unique_values`, which does not need neighbours to be equal
union1d: `xpgrad.unique_values(xpgrad.concat([x, y]))`
intersect1d: `xpgrad.unique_values(x[xpgrad.isin(x, y)])`
setdiff1d: `xpgrad.unique_values(x[~xpgrad.isin(x, y)])`
setxor1d: `xpgrad.unique_values(xpgrad.concat([x[~xpgrad.isin(x, y)], y[~xpgrad.isin(y, x)]]))`
unfold: `xpgrad.stack([x[i:i + n] for i in starts])`
unravel_index: `xpgrad.floor_divide` and `xpgrad.remainder` by the lengths of the axes
ravel_multi_index: `i * n + j`, with `xpgrad.multiply` and `xpgrad.add`
view_as_complex: `x[..., 0] + 1j * x[..., 1]`
view_as_real: `xpgrad.stack([xpgrad.real(x), xpgrad.imag(x)], axis=-1)`
gradient: `xpgrad.diff`, and `(x[2:] - x[:-2]) / 2` inside
spacing: `xpgrad.nextafter(x, xpgrad.inf) - x`
frexp: `e = xpgrad.floor(xpgrad.log2(xpgrad.abs(x))) + 1`, and `x / xpgrad.pow(2.0, e)`
gcd lcm: NumPy's function of `x.numpy()`, and `xpgrad.asarray`: they are not differentiable
trim_zeros: a slice, such as `x[2:-1]`
roots poly poly1d polyadd polyder polydiv polyfit polyint polymul polynomial polysub: `xpgrad.pow(x[:, None], xpgrad.arange(n))`,
     and `xpgrad.linalg.eigvals` of the companion matrix for roots
hamming hanning blackman bartlett kaiser hamming_window hann_window blackman_window bartlett_window kaiser_window windows:
     `xpgrad.asarray(window)` of NumPy's or SciPy's window
stft istft: `xpgrad.fft.rfft` of the frames
signal: `xpgrad.scipy.signal`
sum_to_size: `xpgrad.sum(x, axis=axis, keepdims=True)`
renorm: `x * xpgrad.minimum(1.0, m / xpgrad.linalg.vector_norm(x, axis=1, keepdims=True))`
map2 apply: a function of Tensors, such as `xpgrad.sin`; Python functions of single numbers would not be recorded
index: `x[key]`, and `int(x)` for an index
Variable: `xpgrad.Tensor`
Size: `x.shape`, a tuple of ints
Generator default_generator: a generator of NumPy's, and `xpgrad.asarray` for what it draws
FloatTensor DoubleTensor LongTensor IntTensor BoolTensor HalfTensor ByteTensor CharTensor ShortTensor BFloat16Tensor:
     `xpgrad.tensor(data, dtype=dtype)`
to_dlpack dlpack: `xpgrad.from_dlpack(x)`; the other library's `from_dlpack` takes a Tensor
devices device_count local_devices local_device_count default_backend: `xpgrad.backend_names()`
ShapeDtypeStruct: `xpgrad.empty(shape, dtype=dtype)`
enable_x64: `dtype=xpgrad.float64`, which needs no switch
sharding with_sharding_constraint NamedSharding device_buffer device_buffers addressable_data addressable_shards global_shards
     is_fully_addressable is_fully_replicated committed: `x.array`, the raw array, which a JAX array is with its sharding
traceback aval weak_type is_deleted is_ready unsafe_buffer_pointer on_device_size_in_bytes platform format: `x.array`, the raw
     array, which has it if it is JAX's
hfftn hfft2: `xpgrad.fft.irfftn(xpgrad.conj(x))`, scaled
ihfftn ihfft2: `xpgrad.conj(xpgrad.fft.rfftn(x))`, scaled
linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve: `xpgrad.linalg.cholesky`, or `xpgrad.linalg.solve`
linalg.lu_factor_ex lu_unpack: `xpgrad.linalg.solve`, or `xpgrad.linalg.qr`
linalg.householder_product orgqr ormqr geqrf: `xpgrad.linalg.qr`
svd_lowrank pca_lowrank: `xpgrad.linalg.svd`
lobpcg: `xpgrad.linalg.eigh`
set_: `x.data = y`, with `x.data`
resize_: `xpgrad.reshape`; a Tensor keeps its number of elements
squeeze_ unsqueeze_ t_ swapaxes_ swapdims_: `x = x.squeeze()` and the like, with `x.squeeze`
Tensor.bool: `x.to(xpgrad.bool)`
Tensor.int: `x.to(xpgrad.int32)`
Tensor.short: `x.to(xpgrad.int16)`
Tensor.byte: `x.to(xpgrad.uint8)`
Tensor.bfloat16: `x.to(xpgrad.bfloat16)`
Tensor.cfloat: `x.to(xpgrad.complex64)`
Tensor.cdouble: `x.to(xpgrad.complex128)`
Tensor.equal: `bool(xpgrad.all(x == y))`
Tensor.delete: `del x`, after which the memory is free if nothing else refers to it
Tensor.devices: `x.device`
Tensor.indices: `xpgrad.nonzero(x)`: there are no sparse Tensors
Tensor.scatter_ Tensor.scatter_reduce_ Tensor.index_copy_ Tensor.index_fill_ Tensor.index_put_ Tensor.index_reduce_ Tensor.put_
     Tensor.fill_diagonal_: `x[key] = value`
Tensor.scatter_add_: `x[...] = x.scatter_add(dim, index, src)`, with `x.scatter_add`
Tensor.apply_ Tensor.map_ Tensor.map2_: `x[...] = f(x)` with a function of Tensors, such as `xpgrad.sin`
Tensor.as_strided_: slices, `xpgrad.reshape` and `xpgrad.permute_dims`
Tensor.normal_: `x[...] = rng.normal(size=x.shape)` with a generator of NumPy's: xpgrad has no random numbers
Tensor.random_: `x[...] = rng.integers(n, size=x.shape)` with a generator of NumPy's: xpgrad has no random numbers
"""

#: A line is a regular expression, a colon, and the reason why the names that match it as a whole are
#: missing.
REASONS: str = """
.*_p: xpgrad does not have JAX's primitives; `xpgrad.autograd.custom_rule` defines derivatives
(q_|.*quant|fbgemm|fused_moving|choose_qparams|qint|quint|qscheme|int_repr|dequantize|per_channel|per_tensor).*: xpgrad has no
     quantised Tensors
(to_|is_)?sparse.*|to_mkldnn|to_padded_tensor|(hs|ds|s)mm|hspmm|spmm|sspaddmm|saddmm|.*(crow|ccol|col|row)_indices.*|coalesce|
    is_coalesced|dense_dim|to_dense: xpgrad has no sparse Tensors, but sparse matrices, in `xpgrad.scipy.sparse`
(adaptive_|fractional_|lp_|avg_|max_)?.*(pool|unpool)[123]d.*|conv.*|(batch|layer|group|instance|rms|local_response)_norm.*|
    .*dropout.*|embedding.*|(lstm|gru|rnn)_.*|lstm|gru|.*(_loss|_shuffle|_attention)(_.*)?: xpgrad has no layers of neural networks;
     write it in functions of the standard
(cudnn|miopen|mkldnn|mps|mtia|xpu|cuda)_.*|is_(cuda|xpu|mps|cpu|meta|ipu|maia|mtia|xla|vulkan|mkldnn).*|ipu|mtia: the array library
     knows the hardware; ask `x.device`
(rand|bernoulli|multinomial|poisson|binomial|cauchy|geometric|exponential|log_normal|uniform|rng|random|rrelu).*|.*rng.*|
    initial_seed|distributions: xpgrad has no random numbers; use a generator of NumPy's and `xpgrad.asarray`
(.*Storage|.*Type|Script.*|Concrete.*|Argument.*|.*Argument|Complete.*|Deep.*|Deserial.*|Serial.*|Disable.*|Dispatch.*|Enum.*|
    Error.*|Exclude.*|Execution.*|FatalError|FileCheck|Function.*|Future|Graph.*|IODescriptor|JIT.*|Lite.*|L.*Logger.*|No.*Logger|
    Operator.*|PyTorch.*|Static.*|Sym.*|Tag|Throughput.*|Tracing.*|Use|Value|Agg.*|Alias.*|Benchmark.*|Block|CallStack|Capsule|Code|
    Compilation.*|Accelerator.*|AVG|SUM|OutOfMemoryError|Gradient|StorageBase|Typed.*|Untyped.*|PRIVATE_OPS|USE_.*|Inferred.*|Node|
    LoggerBase|Profiler.*|SavedTensor|NestedIOFunction): it is a class or constant inside PyTorch
(Broadcasting.*|GRID_.*|ScalingType|SwizzleType|handle_torch_function|has_torch_function.*|TorchDispatchMode|is_tensor_like|
    assert_int_or_pair|boolean_dispatch|.*_notes|.*common_args|classproperty|merge_type.*|parse_.*|unify_.*|import_ir.*|
    prepare_multi.*|return_types|torch_version|typename|version|get_file_path|reinforce|module_load|as_subclass|hash_tensor|has_.*|
    compiled_with.*|init_num_threads|cpp|classes|library|ops|package|overrides|serialization|utils|functional|backends|hub|fx|ao|
    futures|monitor|compiler|accelerator|masked|export|kineto_available|profiler_.*|enforce_grad_layout_policy|is_view_replay_enabled|
    debug_unwrap|rearrange|replace_all_.*|region_activation_.*|test|lib|core|ffi|image|config|errors|typing|types): it is an internal
     or a subpackage of another library that arrays and derivatives do not need here
(ModuleDict|ParameterDict|BufferDict|GradScaler|initializers|grid_sample.*|affine_grid.*|upsample.*|interpolate|fold|bilinear|
    gumbel_softmax|norm_except_dim|native_.*|pixel_.*|channel_.*|rrelu|dot_product_.*|scaled_.*|grouped_mm|get_scaled_.*|
    softmax_custom_jvp|linear_cross_entropy|ragged_.*|combinations|nonzero_static|quasirandom): xpgrad has no layers of neural
     networks; write it in functions of the standard
(set_|get_|is_|clear_)?autocast.*|(set_|get_|is_)?(float32_matmul_precision|flush_denormal|num_.*threads|deterministic.*|
    warn_always.*|.*deterministic_.*|.*warn_always.*)|use_determin.*|default_matmul_precision|(Precision|PrecisionLike|AccuracyMode|
    Tolerance|DotAlgorithm.*|RoundingMethod|reduce_precision): the array library decides on precision and threads; xpgrad has no
     switches for it
(Stream|Event|record_stream|get_device_module|pin_memory|is_pinned|share_memory.*|is_shared|vulkan|ipu|hpu|mkldnn|fork|wait|
    thread_safe_.*|multiprocessing|threading|is_set_to|is_storage|storage_.*|const_data_ptr|dim_order|is_distributed|volatile|
    .*memory.*format.*|.*_format|channels_last.*|strided|jagged|layout|memory|is_conj|is_neg|resolve_neg|is_nested|nested|
    may_share_memory|shares_memory|flags|setflags|byteswap|getfield|setfield|ctypes|isfortran): the array library keeps memory and
     devices; `x.array` is its array
(Mesh|P|Shard|Ref|pmax|pmin|pmean|psum.*|pcast|pbroadcast|ppermute|precv|psend|pshuffle|pswapaxes|all_.*|axis_index|axis_size|
    shard_map|smap|reshard|.*_mesh.*|make_array_.*|distributed|process_.*|host_.*|auto_pcast|remove_size_.*): xpgrad has no
     collectives; each process computes with its own Tensors
(transfer_guard.*|thread_guard|check_tracer_leaks|checking_leaks|log_compiles|explain_.*|no_tracing|no_execution|live_arrays|
    clear_caches|effects_barrier|stages|stage|monitoring|experimental|interpreters|api_util|custom_.*|named_.*|ref|.*_ref|freeze|
    dce_sink|composite|optimization_barrier|platform_dependent|create_token|after_all|print_environment_info|make_user_context|
    ensure_compile.*|enable_.*|.*_checks|debug_.*|numpy_.*|allow_f16_.*|array_garbage.*|jax2tf.*|default_prng_impl|legacy_prng_key|
    threefry_.*|checkpoint_policies|typeof|shape_as_value|padtype_to_pads|reduce_window.*|.*Numbers|GatherScatterMode|FftType|
    RandomAlgorithm|eq_to|le_to|lt_to|scaled_dot|approx_.*|igamma_grad_a|random_gamma_grad|mulhi|reduce_xor|split_.*): it is a part of
     JAX's tracing or XLA; functions run eagerly here, and `xpgrad.compile` captures them
(bits?[0-9x]*|u?int[1-7]|float[468]_.*|float8.*|float6.*|float0|float128|complex256|complex32|chalf|clongdouble|longdouble|bytes_|
    str_|void|object_|character|datetime64|timedelta64|(un)?signedinteger|integer|inexact|floating|complexfloating|number|generic|
    flexible|ScalarType|sctypeDict|typecodes|bool8): xpgrad has the dtypes of the Array API standard and bfloat16; `xpgrad.isdtype`
     asks for kinds of them
(.*_copy): views and copies are separate calls; write `x.clone()` of the view
(sym_.*|unsafe_.*|map2_|map_|apply_|resize_as.*|slice_inverse): it is an internal of PyTorch
(busday.*|is_busday|datetime_.*|isnat|strings|rec.*|chararray|recarray|ma|f2py|ctypeslib|emath|char|matrixlib): xpgrad has arrays
     of numbers only
(array_repr|array_str|array2string|base_repr|binary_repr|format_float_.*|info|get_include|show_.*|little_endian|errstate|(get|
    set)(err|bufsize).*|ndenumerate|ndindex|nditer|nested_iters|flatiter|broadcast|ufunc|frompyfunc|common_type|min_scalar_type|
    mintypecode|real_if_close|packbits|unpackbits|einsum_path|piecewise|ComplexWarning|exceptions|dtypes|unwrap): it is about NumPy's
     arrays; NumPy's own takes `x.numpy()`
"""

#: A line is a keyword of transforms in other libraries, or several, a colon, and what to write instead, or why nothing is needed.
KEYWORDS: str = """
in_axes: `in_dims`
out_axes: `out_dims`
fun f fn function: `func`
argnum: `argnums`
holomorphic allow_int reduce_axes: complex arguments have gradients as in PyTorch, and integers have none
axis_name spmd_axis_name axis_size sum_match: xpgrad has no collectives, and sizes are those of the arguments
has_aux: this transform has none; let the function return the value alone
create_graph retain_graph: transforms compose, as in `grad(grad(f))`
"""
