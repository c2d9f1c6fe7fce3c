"""Compile the text of kernels to machine code with llvmlite, and load it into the process."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import platform
import sys
import threading
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from xpgrad._basics.threads import wait_in_forks
from xpgrad.programs.native import cache
from xpgrad.programs.native.llvm_text import Target
from xpgrad.programs.scalars import SCALARS

__all__ = ["Code", "Machine", "machine"]

_FORMAT = "1"  # of what is in the cache; another number makes it new
_RECENT = 256  # functions that stay loaded without a user, for programs that are compiled again
_MAPS = 4  # at most as many pieces of memory with rights of their own does a loaded function have
#: The variants of glibc's vector functions by the width of vectors: the letter in their names.
_WIDTHS = {512: "e", 256: "d", 128: "b"}


_LOCK = threading.RLock()  # for all that LLVM does
wait_in_forks(_LOCK)


@functools.cache
def machine() -> Machine:
    """Return the machine of this process.

    Two threads that call it first at the same time get one each.

    Raises
    ------
    ImportError
        llvmlite is not installed.
    """
    with _LOCK:
        return Machine()


@functools.cache
def _most_functions() -> int:
    """Return how many functions may be loaded at a time. Beyond Linux's limit of maps, LLVM's would not become executable, and crash."""
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii")) // _MAPS
    except (OSError, ValueError):
        return sys.maxsize


class Code:
    """A function in machine code, which stays loaded as long as this object.

    Parameters
    ----------
    engine : ExecutionEngine
        That of llvmlite which has loaded it.
    address : int
    unused : list
        Gets the engine when this object goes.
    """

    __slots__ = ("__weakref__", "_engine", "_unused", "address")

    address: int

    def __init__(self, engine: Any, address: int, unused: list[Any]) -> None:
        self._engine, self.address, self._unused = engine, address, unused

    def __del__(self) -> None:
        self._unused.append(self._engine)  # any thread may run this, at any time


class Machine:
    """The compiler for this processor, and the code that is loaded.

    Parameters
    ----------
    libmvec : bool
        Whether to use the vector functions of glibc if it is there; else our own are used.
    """

    def __init__(self, *, libmvec: bool = True) -> None:
        import llvmlite  # loads late: an extra
        import llvmlite.binding as llvm  # loads late: an extra

        self.llvm: Any = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = llvm.get_host_cpu_features()
        self.processor: str = llvm.get_host_cpu_name()
        self.features: str = features.flatten()
        self.version: str = llvmlite.__version__
        bits = 512 if features.get("avx512f") else 256 if features.get("avx2") else 128
        has_fma = features.get("fma", False) or platform.machine().lower() in ("aarch64", "arm64")  # without, each would be a call
        self.target: Target = Target(bits, self.find_vector_functions(bits) if libmvec else {}, own_functions=has_fma, fuses=has_fma)
        self.has_products: bool = self.find_products()
        self.find_python()
        self.compiler: Any = self.new_compiler()
        self.loaded: WeakValueDictionary[str, Code] = WeakValueDictionary()
        self.recent: deque[Code] = deque(maxlen=_RECENT)
        self.unused: list[Any] = []  # engines that the next call of `load` closes

    def new_compiler(self) -> Any:
        """Return a compiler for this processor."""
        target = self.llvm.Target.from_default_triple()
        return target.create_target_machine(
            cpu=self.processor, features=self.features, opt=3, reloc="pic", codemodel="jitdefault", jit=True
        )

    # -- what kernels call ---------------------------------------------------------------------------------------------------------

    def find_vector_functions(self, bits: int) -> dict[str, list[tuple[int, str]]]:
        """Find the vector variants of C's functions in glibc, the widest first, and make them known to the compiler; none without glibc."""
        try:
            library = ctypes.CDLL("libmvec.so.1") if sys.platform == "linux" else None
        except OSError:
            library = None
        found: dict[str, list[tuple[int, str]]] = {}
        if library is None:
            return found
        for name in sorted({scalar.code for scalar in SCALARS.values() if scalar.form == "function"}):
            letters = "vv" if name in ("atan2", "hypot", "pow") else "v"
            for function, size in ((name, 64), (f"{name}f", 32)):
                for width, letter in _WIDTHS.items():
                    symbol = f"_ZGV{letter}N{width // size}{letters}_{function}"
                    if width <= bits and hasattr(library, symbol):
                        self.llvm.add_symbol(symbol, ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value)
                        found.setdefault(function, []).append((width // size, symbol))
        return found

    def find_products(self) -> bool:
        """Return whether SciPy provides BLAS with 32-bit integers; if so, make its functions known to the compiler."""
        try:
            from scipy.linalg import cython_blas  # pyright: ignore[reportAttributeAccessIssue]  # loads late: an extra
        except ImportError:
            return False
        pointer, name_of = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetName
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
        capsules = cython_blas.__pyx_capi__
        for name in ("dgemm", "sgemm"):
            signature = name_of(capsules[name])
            if signature is None or b"int *" not in signature:
                return False
            self.llvm.add_symbol(f"xpgrad_{name}", pointer(capsules[name], signature))
        return True

    def find_python(self) -> None:
        """Make the addresses of Python's functions and objects known to the compiler."""
        for name in ("Py_IncRef", "PyEval_SaveThread", "PyEval_RestoreThread"):
            self.llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
        objects = {"_Py_NoneStruct": None, "_Py_FalseStruct": False, "_Py_NotImplementedStruct": NotImplemented}
        for name, value in objects.items():
            self.llvm.add_symbol(name, id(value))

    # -- code ----------------------------------------------------------------------------------------------------------------------

    def load(self, texts: Iterable[str]) -> list[Code]:
        """Return functions, which stay loaded as long as the caller keeps them; compile those that are neither loaded nor in the cache.

        Raises
        ------
        MemoryError
            The process has loaded as many as the system allows.
        """
        found = []
        with _LOCK:
            while self.unused:
                self.unused.pop().close()
            for text in texts:
                code = self.loaded.get(text)
                if code is None:
                    code = self.loaded[text] = self.load_one(text)
                    self.recent.append(code)
                found.append(code)
        return found

    def load_one(self, text: str) -> Code:
        """Load a function from the cache, or compile and cache it first."""
        if len(self.loaded) >= _most_functions():
            msg = f"{len(self.loaded)} functions are loaded, and the system's limit of memory maps (vm.max_map_count) allows no more"
            raise MemoryError(msg)
        llvm, key = self.llvm, self.key(text)
        name = f"xpgrad_{key}"
        object_code = cache.load(key)
        if object_code is None:
            object_code = self.compile(text.replace("@NAME", f"@{name}"))
            cache.save(key, object_code)
        # NB: an engine of its own, since one resolves addresses in its first object file only.
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.new_compiler())
        engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        engine.finalize_object()
        return Code(engine, int(engine.get_function_address(name)), self.unused)

    def key(self, text: str) -> str:
        """Return a function's key in the cache: a hash of everything on which its code depends."""
        parts = (text, self.version, self.processor, self.features, _FORMAT)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]

    def compile(self, text: str) -> bytes:
        """Return the object file of a module."""
        code: bytes = self.compiler.emit_object(self.optimize(text))
        return code

    def optimize(self, text: str) -> Any:
        """Return a module after LLVM's passes."""
        llvm = self.llvm
        module = llvm.parse_assembly(text)
        module.verify()
        tuning = llvm.create_pipeline_tuning_options(speed_level=3)
        tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = True
        builder = llvm.create_pass_builder(self.compiler, tuning)
        passes = builder.getModulePassManager()
        passes.run(module, builder)
        # llvmlite does not free them: of its two base classes the first has a `_dispose` that does nothing.
        if type(passes)._dispose is llvm.ffi.ObjectRef._dispose:
            llvm.newpassmanagers.NewPassManager._dispose(passes)
            passes.detach()
        return module
