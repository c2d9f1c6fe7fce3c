"""Attributes of PyTorch's, NumPy's and JAX's arrays that Tensors lack: reading one raises an error that says what to write instead.

They are descriptors whose values cannot be read, so `hasattr` is False for them. The method `__getattr__` would be simpler, but with it
CPython reads every attribute of every Tensor more slowly. `_hints` has the texts; a test compares the names with those of the libraries.
"""

from __future__ import annotations

from typing import Any

from xpgrad._modes.state import current
from xpgrad._rows import namespace

_NAMES = """
H absolute absolute_ addbmm addbmm_ addcdiv addcdiv_ addcmul addcmul_ addmm_ addmv addmv_ addr addr_ addressable_data addressable_shards
adjoint aminmax angle apply_ arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_ arctanh
arctanh_ argpartition argwhere as_strided as_strided_ as_strided_scatter as_subclass at atan2 atan2_ aval baddbmm_ base bernoulli
bernoulli_ bfloat16 bincount bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not_ bitwise_or bitwise_or_
bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ block_until_ready bool broadcast_to byte byteswap cauchy_ ccol_indices
cdouble cfloat chalf char cholesky cholesky_inverse cholesky_solve choose chunk clamp_max clamp_max_ clamp_min clamp_min_ clip_ coalesce
col_indices committed compress conj_physical conj_physical_ conjugate const_data_ptr copy_to_host_async copysign copysign_ corrcoef
count_nonzero cov cpu cross crow_indices ctypes cuda cummax cummin cumprod_ cumsum_ data_ptr deg2rad deg2rad_ delete dense_dim dequantize
det device_buffer device_buffers devices diag diag_embed diagflat diagonal_scatter digamma digamma_ dim_order divide divide_ dsplit dump
dumps eig eq_ equal erf erf_ erfc erfc_ erfinv erfinv_ exp2 exp2_ exponential_ fill_diagonal_ fix fix_ flags flat fliplr flipud
float_power float_power_ floor_divide floor_divide_ fmax fmin fmod fmod_ format frac frac_ frexp gcd gcd_ ge_ geometric_ geqrf ger
get_device getfield global_shards greater greater_ greater_equal greater_equal_ gt_ hardshrink hash_tensor heaviside heaviside_ histc
histogram hsplit hypot hypot_ i0 i0_ igamma igamma_ igammac igammac_ index index_add index_copy index_copy_ index_fill index_fill_
index_put index_put_ index_reduce index_reduce_ indices int int_repr inverse ipu is_coalesced is_conj is_contiguous is_cpu is_cuda
is_deleted is_distributed is_fully_addressable is_fully_replicated is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_neg is_nested
is_nonzero is_pinned is_quantized is_ready is_same_size is_set_to is_shared is_signed is_sparse is_sparse_csr is_vulkan is_xla is_xpu
isneginf isposinf isreal istft kron kthvalue layout lcm lcm_ ldexp ldexp_ le_ lerp lerp_ less less_ less_equal less_equal_ lgamma lgamma_
log_normal_ logaddexp logaddexp2 logcumsumexp logdet logical_and logical_and_ logical_not_ logical_or logical_or_ logical_xor logical_xor_
logit logit_ lstsq lt_ lu lu_solve mH map2_ map_ masked_fill masked_scatter masked_scatter_ matrix_exp matrix_power maximum minimum mode
module_load moveaxis movedim msort mtia multinomial multiply multiply_ mvlgamma mvlgamma_ name nan_to_num nan_to_num_ nanmean nanmedian
nanquantile nansum narrow narrow_copy ndimension ne_ negative negative_ nelement new new_empty_strided nextafter nextafter_ nonzero
nonzero_static normal_ not_equal not_equal_ on_device_size_in_bytes orgqr ormqr partition pin_memory pinverse platform polygamma
polygamma_ prelu ptp put put_ q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qr qscheme quantile
rad2deg rad2deg_ random_ record_stream reinforce relu_ remainder remainder_ renorm renorm_ repeat_interleave reshape_as resize resize_
resize_as resize_as_ resize_as_sparse_ resolve_conj resolve_neg roll rot90 row_indices rsqrt rsqrt_ scatter scatter_ scatter_add_
scatter_reduce scatter_reduce_ searchsorted select select_scatter set_ setfield setflags sgn sgn_ sharding share_memory_ short sigmoid_
sinc sinc_ slice_inverse slice_scatter slogdet smm solve sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ split
split_with_sizes squeeze_ sspaddmm stft storage storage_offset storage_type strides subtract subtract_ sum_to_size svd swapaxes_ swapdims
swapdims_ symeig t_ take_along_dim tensor_split to_dense to_mkldnn to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo
to_sparse_csc to_sparse_csr tobytes tofile topk traceback triangular_solve tril tril_ triu triu_ true_divide true_divide_ type unflatten
unfold uniform_ unique unique_consecutive unsafe_buffer_pointer unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_
untyped_storage values vdot volatile vsplit weak_type xlogy xlogy_ xpu
"""


class MissingAttribute:
    """An attribute of other libraries' arrays that Tensors do not have.

    Attributes
    ----------
    name : str
    message : str or None
        The message of its error; None before the first.
    """

    __slots__ = ("message", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.message: str | None = None

    def __get__(self, obj: Any, cls: type) -> Any:
        mode = current()
        if obj is not None and mode is not None and mode.numpy is not None:
            found = mode.numpy.find_attribute(self.name, obj)
            if found is not None:
                return found
        raise self._error(cls if obj is None else obj)

    def __set__(self, obj: Any, value: Any) -> None:
        mode = current()
        if mode is None or mode.numpy is None or not mode.numpy.set_attribute(self.name, obj, value):
            raise self._error(obj)

    def _error(self, obj: Any) -> AttributeError:
        """Return the error for the attribute."""
        if self.message is None:  # libraries ask again and again which attributes an array has
            self.message = namespace.package._missing_name("'Tensor' object", self.name, "Tensor")
        return AttributeError(self.message, name=self.name, obj=obj)


#: By name.
MISSING: dict[str, MissingAttribute] = {name: MissingAttribute(name) for name in _NAMES.split()}


class MissingAttributes:
    """Base of the classes of devices; `Tensor` itself is without it, so that `help` does not list the names."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in MISSING]


for _name, _attribute in MISSING.items():
    setattr(MissingAttributes, _name, _attribute)
