"""Private kernels that are not functions of the standard, written with it: the defaults for backends without their own.

In each, ``xp`` is the raw namespace of a backend (`backend.Kernels`). NB: an index may contain only integers, slices, newaxis, an
ellipsis, or a mask as the only index, and must cover all axes, because the standard guarantees no more.
"""

from __future__ import annotations

import math
from typing import Any, cast

from xpgrad._array.pieces import broadcast_value, write_block
from xpgrad._basics.docstrings import shares
from xpgrad._basics.dtypes import complex_of, float32
from xpgrad._basics.keys import check_ellipsis, full_key, is_basic, out_of_range, too_many_indices_error, zero_step_error
from xpgrad._basics.shapes import common_shape, row_major_strides
from xpgrad.errors import CapabilityError

_BLOCK = 1 << 20  # number of elements in a comparison of a block of places with all indices


#: Shared sections of the docstrings of kernels.
_PARAMETERS = """\
xp : Kernels
    The raw namespace of the backend, which has every kernel by its name.
x : array
    A raw array.
like : array
    A raw array on the device of the result.
shape : tuple of int
    A shape.
buffer : array
    A raw array that belongs to the caller and may be overwritten.
key : tuple
    A key of any kind, as `x[key]` takes it: ints, slices, ellipses, None, integer and bool arrays.
value : array or number
    The value to write; it broadcasts to ``buffer[key]``.
g : array
    The raw array to add.
positions : array
    Integers from 0 to size - 1, one axis, checked by the caller.
size : int
    The number of places."""
_document_kernel = shares(
    _PARAMETERS,
    returns="""\
array
    A raw array of the library.""",
)
_document_check = shares(_PARAMETERS)


def _is_integer(part: Any) -> bool:
    """Return whether a part of a key is a plain integer."""
    return isinstance(part, int) and not isinstance(part, bool)


def read_number(xp: Any, x: Any) -> Any:
    """Return the number in a raw array without axes. NB: not every library's arrays have `__bool__` and `__int__`."""
    return xp._backend.to_host(x).item()


class DefaultKernels:
    """One static method per kernel.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> from xpgrad.backend import DefaultKernels, Kernels
    >>> kernels = Kernels(xp.registry.backend_for("numpy"))
    >>> DefaultKernels.copy(kernels, np.asarray([1.0, 2.0]))
    array([1., 2.])
    >>> sorted(n for n in vars(DefaultKernels) if n.startswith("s"))
    ['scale', 'scatter_into', 'segment_sum', 'surely_nonzero']
    """

    @staticmethod
    @_document_kernel
    def copy(xp: Any, x: Any) -> Any:
        """Return a copy in new memory.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> x = np.asarray([1.0, 2.0])
        >>> DefaultKernels.copy(kernels, x) is x
        False
        """
        return xp.asarray(x, copy=True)

    @staticmethod
    @_document_kernel
    def cast(xp: Any, x: Any, dtype: Any) -> Any:
        """Return `x` converted to a raw dtype.

        Parameters
        ----------
        dtype : object
            A raw dtype of the library.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.cast(kernels, np.asarray([1.0, 2.0]), np.dtype("float32")).dtype
        dtype('float32')
        """
        return xp.to_dtype(x, dtype)

    @staticmethod
    @_document_kernel
    def wide(xp: Any, x: Any) -> Any:
        """Return `x` in float32 if its dtype is a 16-bit floating one, which cannot hold large counts or their reciprocals; else `x`.

        Returns
        -------
        array
            In float32, or `x` itself.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.wide(kernels, np.asarray([1.0], dtype=np.float16)).dtype
        dtype('float32')
        """
        backend = xp._backend
        dtype = backend.dtype_of(x.dtype)
        return xp.cast(x, backend.raw_dtype(float32)) if dtype.category == "real floating" and dtype.itemsize < 4 else x

    @staticmethod
    @_document_check
    def check_phase(xp: Any, drift: Any, size: Any, name: str) -> None:
        """Raise if a loss depends on the phases that a factorisation leaves undetermined (`drift` should vanish).

        Parameters
        ----------
        drift : array
            The quantity that should vanish.
        size : array
            The size that rounding alone can give `drift`.
        name : str
            The name of the factorisation, for the message.

        Raises
        ------
        RuntimeError
            If the loss depends on the phases.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.check_phase(kernels, np.asarray([0.0]), np.asarray([1.0]), "svd") is None
        True
        """
        if 0 in drift.shape or xp._backend.is_traced(drift):
            return
        # NB: this is PyTorch's absolute tolerance, increased in proportion to large gradients.
        if read_number(xp, xp.max(xp.abs(drift))) > 1e-2 * max(1.0, read_number(xp, xp.max(size))):
            msg = (
                f"{name} of a complex matrix are arbitrary (each may be multiplied by e^(i phi)), and the loss depends on them, so it "
                "is ill-defined: its gradient does not exist. Use a loss that is the same for all phases"
            )
            raise RuntimeError(msg)

    @staticmethod
    @_document_kernel
    def general_eigen(xp: Any, x: Any) -> Any:
        """Return the eigenvalues and eigenvectors of square matrices, always complex: the library's `eig` (Array API 2025.12).

        Returns
        -------
        (array, array)
            Values, and vectors as columns.

        Raises
        ------
        CapabilityError
            If the library has no `eig`.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> values, vectors = DefaultKernels.general_eigen(kernels, np.asarray([[0.0, 1.0], [-1.0, 0.0]]))
        >>> values
        array([0.+1.j, 0.-1.j])
        """
        return tuple(_as_complex(xp, part) for part in _eig_without_symmetry(xp, "eig", x))

    @staticmethod
    @_document_kernel
    def general_eigenvalues(xp: Any, x: Any) -> Any:
        """Return the eigenvalues of square matrices, always complex: the library's `eigvals` (Array API 2025.12).

        Raises
        ------
        CapabilityError
            If the library has no `eigvals`.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.general_eigenvalues(kernels, np.asarray([[0.0, 1.0], [-1.0, 0.0]]))
        array([0.+1.j, 0.-1.j])
        """
        return _as_complex(xp, _eig_without_symmetry(xp, "eigvals", x))

    @staticmethod
    @_document_kernel
    def surely_nonzero(xp: Any, x: Any) -> bool:
        """Return whether no element is 0, if reading the values costs nothing; False if that is unknown.

        Returns
        -------
        bool
            False if that is unknown.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.surely_nonzero(kernels, np.asarray([1.0, 2.0]))
        False
        """
        return False

    @staticmethod
    @_document_check
    def check_regular(xp: Any, x: Any) -> None:
        """Raise if a matrix is singular up to rounding.

        Parameters
        ----------
        x : array
            Square matrices.

        Raises
        ------
        An error of the library, such as numpy.linalg.LinAlgError
            If a matrix is singular.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.check_regular(kernels, np.eye(2)) is None
        True
        """
        if 0 in x.shape or xp._backend.is_traced(x):
            return
        s = xp.linalg.svdvals(x)
        if read_number(xp, xp.any(s[..., -1] <= s[..., 0] * (x.shape[-1] * xp.finfo(s.dtype).eps))):
            msg = "the third derivative of `linalg.det` needs invertible matrices, but this one is singular up to rounding"
            raise RuntimeError(msg)

    # -- reading ---------------------------------------------------------------------------------------------------------

    @staticmethod
    @_document_kernel
    def count_up(xp: Any, like: Any, *bounds: int) -> Any:
        """Return ``arange(*bounds)`` in the dtype of indices, on the device of `like`.

        Parameters
        ----------
        *bounds : int
            As `arange` takes them.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.count_up(kernels, np.ones(2), 1, 4)
        array([1, 2, 3])
        """
        backend = xp._backend
        device = backend.device_of(like)
        dtype = backend.raw_dtype(backend.default_dtype("indexing", device))
        return xp.arange(*bounds, dtype=dtype, **backend.creation_options(device))

    @staticmethod
    @_document_kernel
    def zeros_near(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
        """Return zeros of the dtype of `x`, on its device. NB: not every array, or traced stand-in, has a device attribute.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.zeros_near(kernels, np.ones(2), (3,))
        array([0., 0., 0.])
        """
        backend = xp._backend
        return xp.zeros(shape, dtype=x.dtype, **backend.creation_options(backend.device_of(x)))

    @staticmethod
    @_document_kernel
    def flat_index(xp: Any, key: Any, shape: tuple[int, ...], like: Any) -> Any:
        """Return the positions in the flattened array of `shape` that ``[key]`` selects, as integers of the result's shape.

        Integer arrays broadcast together. As in NumPy their axes go where the first of them is, or in front if a slice, an ellipsis
        or a new axis separates them. `like` is an array on the device of the result.

        Returns
        -------
        array
            Positions in the flattened array, of the shape of ``x[key]``.

        Raises
        ------
        IndexError
            If an index is out of range, or there are too many.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.flat_index(kernels, (np.asarray([1, 0]), 2), (2, 3), np.ones(1))
        array([5, 2])
        """
        parts, used = _key_parts(xp, key, shape)
        if not any(p is Ellipsis for p in parts):
            parts = (*parts, cast("Any", Ellipsis))
        strides = row_major_strides(shape)
        advanced = any(not (p is None or p is Ellipsis or isinstance(p, (int, slice))) for p in parts)
        lengths: list[int] = []  # of the result's axes that do not come from integer arrays
        ranges: list[tuple[int, Any]] = []  # (axis of the result among those, positions)
        picks: list[Any] = []
        offset, axis, place, ended, together = 0, 0, -1, False, True
        for part in parts:
            if part is None or part is Ellipsis or isinstance(part, slice):
                ended = ended or bool(picks)
                slices: list[Any] = [slice(None)] * (len(shape) - used) if part is Ellipsis else [part]
                for one in slices:
                    if one is None:
                        lengths.append(1)
                        continue
                    bounds = _bounds(one, shape[axis])
                    ranges.append((len(lengths), xp.count_up(like, *bounds) * strides[axis]))
                    lengths.append(len(range(*bounds)))
                    axis += 1
                continue
            if _is_integer(part):
                n = shape[axis]
                _check_integer(part, n, axis)
                offset += part % n * strides[axis]
                axis += 1
                if not advanced:
                    continue
                found: list[Any] = []
            elif xp.isdtype(part.dtype, "bool"):
                width = len(part.shape)
                _check_mask(part, shape, axis)
                if width:
                    found = [i * s for i, s in zip(xp.nonzero(part), strides[axis : axis + width])]
                else:
                    found = [xp.nonzero(xp.reshape(part, (1,)))[0]]
                axis += width
            else:
                found = [xp.from_front(part, shape[axis], axis, like) * strides[axis]]
                axis += 1
            if place < 0:
                place = len(lengths)
            together = together and not ended
            picks += found or [xp.count_up(like, 1)[0]]
        if not together:
            place = 0
        place = max(place, 0)
        common = _common_index_shape([p.shape for p in picks])
        picked = None
        for p in picks:
            picked = p if picked is None else picked + p
        full = (*lengths[:place], *common, *lengths[place:])
        out = xp.broadcast_to(xp.reshape(xp.count_up(like, offset, offset + 1), (1,) * len(full)), full)
        for i, positions in ranges:
            where = i if i < place else i + len(common)
            out = out + xp.reshape(positions, tuple(lengths[i] if j == where else 1 for j in range(len(full))))
        if picked is not None:
            out = out + xp.reshape(picked, (*common, *(1,) * (len(full) - place - len(common))))
        return out

    @staticmethod
    @_document_kernel
    def from_front(xp: Any, indices: Any, n: int, axis: int, like: Any) -> Any:
        """Return indices into an axis of length `n` in the dtype of indices, counted from the front, on the device of `like`.

        Parameters
        ----------
        indices : array
            Integers from -n to n - 1.
        n : int
            The length of the axis.
        axis : int
            The number of the axis, for the message.

        Returns
        -------
        array
            Integers from 0 to n - 1.

        Raises
        ------
        IndexError
            If an index is out of range and the values can be read.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.from_front(kernels, np.asarray([-1, 0]), 3, 0, np.ones(1))
        array([2, 0])
        """
        backend = xp._backend
        # NB: some libraries clamp or wrap indices out of range, others access memory out of bounds. Traced values cannot be read, and
        # those of a lazy library must not be.
        is_known = not backend.capabilities.lazy and not backend.is_traced(indices)  # of the caller's array: results may be lazy
        indices = xp.astype(indices, backend.raw_dtype(backend.default_dtype("indexing", backend.device_of(like))), copy=False)
        if is_known:
            outside = xp.any((indices < -n) | (indices >= n))
            if not backend.is_traced(outside) and read_number(xp, outside):  # inside a transform even results of constants may be traced
                lowest, highest = int(read_number(xp, xp.min(indices))), int(read_number(xp, xp.max(indices)))
                raise out_of_range(lowest if lowest < -n else highest, n, axis)
        return xp.where(indices < 0, indices + n, indices)

    @staticmethod
    @_document_kernel
    def take_flat(xp: Any, x: Any, flat: Any) -> Any:
        """Return the elements of the flattened `x` at positions of any shape.

        Parameters
        ----------
        flat : array
            Integers from 0 to the number of elements - 1, checked by the caller; any shape.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.take_flat(kernels, np.asarray([[1.0, 2.0], [3.0, 4.0]]), np.asarray([3, 0]))
        array([4., 1.])
        """
        shape = tuple(flat.shape)
        return xp.reshape(xp.take(xp.reshape(x, (math.prod(x.shape),)), xp.reshape(flat, (math.prod(shape),)), axis=0), shape)

    @staticmethod
    @_document_kernel
    def read(xp: Any, x: Any, key: Any) -> Any:
        """Return ``x[key]`` for a key of any kind.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.read(kernels, np.asarray([[1.0, 2.0], [3.0, 4.0]]), (slice(None), 0))
        array([1., 3.])
        """
        return xp.index_basic(x, key) if is_basic(key) else xp.gather(x, key)

    # -- adding and writing ----------------------------------------------------------------------------------------------

    @staticmethod
    @_document_kernel
    def segment_sum(xp: Any, values: Any, positions: Any, size: int) -> Any:
        """Return the sums of the `values` (one axis) that share a position, for the positions 0 .. size - 1.

        NB: this compares each place with each position, which costs their product, so a backend should provide a better kernel.
        Differences of cumulative sums would be cheaper, but would spread one inf over everything that follows it.

        Parameters
        ----------
        values : array
            One axis, as long as `positions`.

        Returns
        -------
        array
            Of shape (size,), of the dtype of `values`.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.segment_sum(kernels, np.asarray([1.0, 2.0, 3.0]), np.asarray([0, 2, 0]), 3)
        array([4., 0., 2.])
        """
        zero = xp.zeros_like(values)
        if not values.shape[0]:
            return xp.zeros_near(values, (size,))
        return _by_place(xp, positions, size, lambda hit: xp.sum(xp.where(hit, values, zero), axis=1, dtype=values.dtype))

    @staticmethod
    @_document_kernel
    def last_writer(xp: Any, positions: Any, size: int) -> Any:
        """Return, for each place 0 .. size - 1, 1 + the index of the last of the `positions` equal to it, or 0.

        Returns
        -------
        array
            Integers, of shape (size,).

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.last_writer(kernels, np.asarray([0, 2, 0]), 3)
        array([3, 0, 2])
        """
        number = xp.count_up(positions, 1, positions.shape[0] + 1)
        zero = xp.zeros_like(number)
        return _by_place(xp, positions, size, lambda hit: xp.max(xp.where(hit, number, zero), axis=1))

    @staticmethod
    @_document_kernel
    def written(xp: Any, buffer: Any, key: Any, value: Any) -> Any:
        """Return `buffer`, which belongs to the caller, with ``[key]`` overwritten; the last of duplicate indices counts.

        Returns
        -------
        array
            `buffer`, or a new array if arrays cannot be written to.

        Raises
        ------
        IndexError
            If an index is out of range.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.written(kernels, np.zeros(3), (np.asarray([0, 0]),), np.asarray([1.0, 2.0]))
        array([2., 0., 0.])
        """
        if is_basic(key) and xp._backend.capabilities.mutable:
            key = full_key(key, buffer.shape)
            if any(p is None for p in key):  # the standard allows newaxis in reads, but not in writes
                part = tuple(p for p in key if p is not None)
                if not isinstance(value, (bool, int, float, complex)):
                    value = xp.reshape(xp.broadcast_to(value, xp.index_basic(buffer, key).shape), buffer[part].shape)
                key = part
            buffer[key] = value
            return buffer
        if is_basic(key):
            return write_block(xp, buffer, key, value)
        shape = tuple(buffer.shape)
        found = _single_index_array(xp, key, shape)
        if found is not None:
            return _write_along(xp, buffer, *found, value)
        flat = xp.flat_index(key, shape, buffer)
        count, size = math.prod(flat.shape), math.prod(shape)
        if not count or not size:
            return buffer
        writer = xp.last_writer(xp.reshape(flat, (count,)), size)
        if isinstance(value, (bool, int, float, complex)):
            new: Any = xp.reshape(xp.full_like(buffer, value), (size,))
        else:
            values = xp.reshape(broadcast_value(xp, value, tuple(flat.shape)), (count,))
            new = xp.take(values, xp.where(writer > 0, writer - 1, xp.zeros_like(writer)), axis=0)
            new = xp.astype(new, buffer.dtype, copy=False)
        out = xp.where(writer > 0, new, xp.reshape(buffer, (size,)))
        return xp.reshape(out, shape)

    @staticmethod
    @_document_kernel
    def put_at_path(xp: Any, root: Any, path: Any, value: Any) -> Any:
        """Return a copy of `root` in which the part selected by a path of views is replaced by `value`.

        Parameters
        ----------
        root : array
            The base of the views.
        path : sequence of (str, tuple)
            The names of the kernels of the views, each with its further arguments.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.put_at_path(kernels, np.zeros(3), [("index_basic", ((slice(1, 3),),))], np.asarray([5.0, 6.0]))
        array([0., 5., 6.])
        """
        for k, (name, _) in enumerate(path):
            if name in ("real_part", "imag_part"):  # these views select a part of each element
                whole = root
                for step, options in path[:k]:
                    whole = getattr(xp, step)(whole, *options)
                part = xp.real(whole) if name == "real_part" else xp.imag(whole)
                part = xp.put_at_path(part, path[k + 1 :], value) if path[k + 1 :] else value
                other = xp.imag(whole) if name == "real_part" else xp.real(whole)
                real, imaginary = (part, other) if name == "real_part" else (other, part)
                joined = xp.cast(real, whole.dtype) + xp.cast(imaginary, whole.dtype) * 1j
                return xp.put_at_path(root, path[:k], joined) if k else joined
        if path and path[0][0] == "index_basic" and not xp._backend.capabilities.mutable:
            (key,) = path[0][1]
            part = xp.put_at_path(xp.index_basic(root, key), path[1:], value) if path[1:] else value
            return xp.written(xp.copy(root), key, part)
        count = math.prod(root.shape)
        places = xp.reshape(xp.count_up(root, count), tuple(root.shape))
        for name, args in path:
            places = getattr(xp, name)(places, *args)
        flat = xp.copy(xp.reshape(root, (-1,)))
        return xp.reshape(xp.written(flat, (xp.reshape(places, (-1,)),), xp.reshape(value, (-1,))), tuple(root.shape))

    @staticmethod
    @_document_kernel
    def scatter_into(xp: Any, buffer: Any, g: Any, key: Any) -> Any:
        """Return `buffer` with `g` added at an advanced index, duplicates included.

        Parameters
        ----------
        key : tuple
            A key with at least one integer or bool array; it may also contain ints, slices, an ellipsis and None.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.scatter_into(kernels, np.zeros(3), np.asarray([1.0, 2.0]), (np.asarray([0, 0]),))
        array([3., 0., 0.])
        """
        return buffer + xp.scatter_add(g, key, tuple(buffer.shape))

    @staticmethod
    @_document_kernel
    def scale(xp: Any, g: Any, factor: Any) -> Any:
        """Return ``g * factor``, in the memory of `g` if that is possible.

        Parameters
        ----------
        g : array
            The raw array to scale; it may be overwritten.
        factor : number or array
            A factor; an array has no axes.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.scale(kernels, np.asarray([1.0, 2.0]), 10.0)
        array([10., 20.])
        """
        return g * factor

    @staticmethod
    @_document_kernel
    def add_at(xp: Any, buffer: Any, g: Any, key: Any) -> Any:
        """Return `buffer` after ``buffer[key] += g`` for a basic key, in place if arrays can be written to.

        Parameters
        ----------
        key : tuple
            A basic key: ints, slices, an ellipsis and None.

        Returns
        -------
        array
            `buffer`, or a new array if arrays cannot be written to.

        Examples
        --------
        >>> import numpy as np
        >>> import xpgrad as xp
        >>> from xpgrad.backend import DefaultKernels, Kernels
        >>> kernels = Kernels(xp.registry.backend_for("numpy"))
        >>> DefaultKernels.add_at(kernels, np.zeros(3), np.asarray([1.0, 2.0]), (slice(1, 3),))
        array([0., 1., 2.])
        """
        if not xp._backend.capabilities.mutable:
            return buffer + xp.index_basic_transpose(g, key, tuple(buffer.shape))
        if not buffer.shape:  # a sum of 0-d arrays may be a scalar, which cannot be written to
            return buffer + xp.reshape(g, ())
        return xp.written(buffer, key, xp.index_basic(buffer, key) + g)


# -- keys with one index array: along its axis, without flattening ----------------------------------------------------------------


def _single_index_array(xp: Any, key: Any, shape: tuple[int, ...]) -> tuple[int, Any] | None:
    """Return the axis and the integers of a key with one index array and otherwise full slices; None for any other key."""
    parts, used = _key_parts(xp, key, shape)
    axis, found = 0, None
    for part in parts:
        if part is Ellipsis:
            axis += len(shape) - used
        elif isinstance(part, slice):
            if part != slice(None):
                return None
            axis += 1
        elif part is None or isinstance(part, int) or xp.isdtype(part.dtype, "bool") or found is not None:
            return None
        else:
            found = axis, part
            axis += 1
    return found


def take_along(xp: Any, x: Any, key: Any) -> Any:
    """Return ``x[key]`` for a key with one index array and otherwise full slices, by `take`; None for any other key."""
    shape = tuple(x.shape)
    found = _single_index_array(xp, key, shape)
    if found is None:
        return None
    axis, indices = found
    flat = xp.reshape(xp.from_front(indices, shape[axis], axis, x), (math.prod(indices.shape),))
    return xp.reshape(xp.take(x, flat, axis=axis), (*shape[:axis], *indices.shape, *shape[axis + 1 :]))


def add_along(xp: Any, g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return zeros of `shape` with `g` added at a key with one index array and otherwise full slices; None for any other key.

    NB: only for backends without a `segment_sum`, whose default this repeats for whole slices.
    """
    found = _single_index_array(xp, key, shape) if xp._backend.kernel("segment_sum") is None else None
    if found is None:
        return None
    axis, indices = found
    n, count = shape[axis], math.prod(indices.shape)
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    if not count or not before * n * after:
        return xp.zeros_near(g, shape)
    positions = xp.reshape(xp.from_front(indices, n, axis, g), (1, 1, count, 1))
    values = xp.reshape(g, (before, 1, count, after))
    zero = xp.zeros_like(values)
    rows = max(_BLOCK // (before * count * after), 1)
    blocks = []
    for start in range(0, n, rows):
        places = xp.reshape(xp.count_up(positions, start, min(start + rows, n)), (1, -1, 1, 1))
        blocks.append(xp.sum(xp.where(places == positions, values, zero), axis=2, dtype=g.dtype))
    return xp.reshape(blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=1), shape)


def _write_along(xp: Any, buffer: Any, axis: int, indices: Any, value: Any) -> Any:
    """Return `buffer` with the slices at `indices` along an axis overwritten."""
    shape = tuple(buffer.shape)
    count = math.prod(indices.shape)
    positions = xp.reshape(xp.from_front(indices, shape[axis], axis, buffer), (count,))
    is_number = isinstance(value, (bool, int, float, complex))
    if not is_number:  # before anything else, since it raises if the shape does not fit
        value = broadcast_value(xp, value, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))
    if not count or 0 in shape:
        return buffer
    writer = xp.last_writer(positions, shape[axis])
    if is_number:
        new: Any = xp.full_like(buffer, value)
    else:
        value = xp.reshape(value, (*shape[:axis], count, *shape[axis + 1 :]))
        new = xp.take(value, xp.where(writer > 0, writer - 1, xp.zeros_like(writer)), axis=axis)
        new = xp.astype(new, buffer.dtype, copy=False)
    is_new = xp.reshape(writer > 0, tuple(n if i == axis else 1 for i, n in enumerate(shape)))
    return xp.where(is_new, new, buffer)


# -- what a backend's own kernels may rely on --------------------------------------------------------------------------------


def check_key(xp: Any, key: Any, shape: tuple[int, ...], like: Any) -> tuple[Any, ...]:
    """Return a key of any kind as a tuple after every check; a basic key is normalised as by `full_key`.

    Raises
    ------
    IndexError
        If an integer or an element of an index array is out of range, a mask has another shape than the axes that it is for, index arrays
        do not broadcast together, or there are too many indices or two ellipses.
    ValueError
        If a slice has a step of 0.
    """
    if is_basic(key):
        return full_key(key, shape)
    parts, used = _key_parts(xp, key, shape)
    axis, arrays = 0, []
    for part in parts:
        if part is Ellipsis:
            axis += len(shape) - used
        elif part is None:
            continue
        elif isinstance(part, (int, slice)):
            if isinstance(part, slice):
                _bounds(part, shape[axis])
            else:
                _check_integer(part, shape[axis], axis)
            axis += 1
        elif xp.isdtype(part.dtype, "bool"):
            _check_mask(part, shape, axis)
            axis += len(part.shape)
        else:
            DefaultKernels.from_front(xp, part, shape[axis], axis, like)
            arrays.append(part.shape)
            axis += 1
    _common_index_shape(arrays)
    return parts


def _key_parts(xp: Any, key: Any, shape: tuple[int, ...]) -> tuple[tuple[Any, ...], int]:
    """Return the parts of a key and the number of axes that they index; raise if there are too many, or two ellipses."""
    parts: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)
    used = sum(_axes_of(xp, p) for p in parts)
    if used > len(shape):
        raise too_many_indices_error(shape, used)
    check_ellipsis(parts)
    return parts, used


def _eig_without_symmetry(xp: Any, name: str, x: Any) -> Any:
    """Call the library's function for matrices that are not Hermitian.

    Raises
    ------
    CapabilityError
        If the library has none, or none for the device of `x`.
    """
    function = getattr(xp.linalg, name, None)
    table = xp._backend.table_name
    if function is None:
        msg = f"backend {table!r} has no function `linalg.{name}`, which the standard has since 2025.12"
        raise CapabilityError(msg)
    try:
        return function(x)
    except NotImplementedError as exc:
        if isinstance(exc, CapabilityError):
            raise
        device = xp._backend.device_of(x)
        msg = f"backend {table!r} has no function `linalg.{name}` on {str(device)!r} ({exc}); compute on its CPU, or on another backend"
        raise CapabilityError(msg) from exc


def _as_complex(xp: Any, x: Any) -> Any:
    backend = xp._backend
    dtype = backend.dtype_of(x.dtype)
    return x if dtype.is_complex else xp.cast(x, backend.raw_dtype(complex_of(dtype)))


def _bounds(part: slice, n: int) -> tuple[int, int, int]:
    """Return the start, stop and step of a slice of an axis of length `n`."""
    try:
        return part.indices(n)
    except ValueError as exc:
        raise zero_step_error(part) or exc from exc


def _check_integer(part: int, n: int, axis: int) -> None:
    if part < -n or part >= n:
        raise out_of_range(part, n, axis)


def _check_mask(part: Any, shape: tuple[int, ...], axis: int) -> None:
    """Raise if a mask has another shape than the axes that it indexes."""
    place = tuple(shape[axis : axis + len(part.shape)])
    if tuple(part.shape) != place:
        msg = f"a mask of shape {tuple(part.shape)} does not fit the axes {place} of an array of shape {tuple(shape)}"
        raise IndexError(msg)


def _common_index_shape(shapes: list[Any]) -> tuple[int, ...]:
    """Return the shape to which the arrays of an index broadcast."""
    try:
        return common_shape(*shapes)
    except ValueError as exc:
        msg = f"the arrays of an index must broadcast together: {exc}"
        raise IndexError(msg) from exc


def _axes_of(xp: Any, part: Any) -> int:
    """Return the number of axes that a part of a key indexes."""
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, (int, slice)):
        return 1
    return len(part.shape) if xp.isdtype(part.dtype, "bool") else 1


def _by_place(xp: Any, positions: Any, size: int, reduce: Any) -> Any:
    """Return ``reduce(mask)``, where ``mask[i, k]`` says whether ``positions[k]`` is `i`, for `i` below `size`; in blocks of rows."""
    rows = max(_BLOCK // max(positions.shape[0], 1), 1)
    places = [xp.count_up(positions, start, min(start + rows, size)) for start in range(0, max(size, 1), rows)]
    blocks = [reduce(xp.reshape(p, (-1, 1)) == xp.reshape(positions, (1, -1))) for p in places]
    return blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=0)
