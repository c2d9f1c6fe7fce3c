"""The driver: one built-in function in machine code, which runs the steps of any program on NumPy arrays.

A program is a table of words: the arguments that it takes, the addresses of its constants, and its steps, each a kernel with its arrays and
numbers. Steps that repeat are in the table once, with how their addresses and numbers change. The function compares each argument with the
table, and reads the addresses of elements from the array objects, so that a call needs no ctypes. It returns None; NotImplemented if an
argument differs from the table; or False if an index is out of bounds.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

__all__ = ["ARGUMENT_FLAGS", "DATA", "LAYOUT_IS_KNOWN", "RESULT_FLAGS", "driver_text"]

_HEAD = object.__basicsize__
#: Where an array has the address of its elements, its number of axes, its shape, its dtype and its flags.
DATA, _RANK, _SHAPE, _DTYPE, _FLAGS = _HEAD, _HEAD + 8, _HEAD + 16, _HEAD + 40, _HEAD + 48
_CLASS = _HEAD - 8
_BYTES = bytes.__basicsize__ - 1
#: Row-major order and alignment; a result must be writeable, too.
ARGUMENT_FLAGS, RESULT_FLAGS = 0x101, 0x501


def _layout_is_known() -> bool:
    """Return whether this NumPy and this Python lay out arrays and scalars in memory as the driver expects."""
    array = np.arange(6.0).reshape(2, 3)
    scalar, data = np.float64(7.5), bytes(range(16))

    def word(x: Any, offset: int, kind: Any = ctypes.c_size_t) -> Any:
        return kind.from_address(id(x) + offset).value

    shape = word(array, _SHAPE)
    return (
        ctypes.sizeof(ctypes.c_void_p) == 8
        and word(array, _CLASS) == id(np.ndarray)
        and word(array, DATA) == array.ctypes.data
        and word(array, _RANK, ctypes.c_int) == 2
        and [ctypes.c_ssize_t.from_address(shape + 8 * i).value for i in range(2)] == [2, 3]
        and word(array, _DTYPE) == id(array.dtype) == id(np.dtype("float64"))
        and word(array, _FLAGS, ctypes.c_int) & RESULT_FLAGS == RESULT_FLAGS
        and word(scalar, _CLASS) == id(np.float64)
        and word(scalar, _HEAD, ctypes.c_double) == 7.5
        and ctypes.string_at(id(data) + _BYTES, 16) == data
    )


LAYOUT_IS_KNOWN: bool = _layout_is_known()


def driver_text() -> str:
    """Return the text of the function ``xpgrad_run``.

    The table's words: the numbers of arguments, constants and groups of steps, the most pointers of a step, and whether the interpreter's
    lock is released; for each argument the dtype's address, the class of scalars or 0, the flags, the number of axes and the lengths; the
    addresses of the constants; and the groups.

    A group has the number of times that it runs, the number of its steps, and the steps: the kernel, the numbers of its pointers and
    numbers, and 0 or the position in the table of the numbers for each time; for each pointer an array, an offset in bytes, and the bytes
    by which it advances each time; and the numbers, if they are the same each time. If the array of a pointer is negative, the offset is a
    position in the table, where there are an array and an offset for each time.
    """
    return _DRIVER.format(
        table=_BYTES, cls=_CLASS, data=DATA, rank=_RANK, shape=_SHAPE, dtype=_DTYPE, flags=_FLAGS, scalar=_HEAD
    )  # fmt: skip


_DRIVER = """\
@_Py_NoneStruct = external global i8
@_Py_FalseStruct = external global i8
@_Py_NotImplementedStruct = external global i8
@PyArray_Type = external global i8
declare void @Py_IncRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

define internal i64 @next(ptr %cursor) alwaysinline {{
  %at = load ptr, ptr %cursor
  %word = load i64, ptr %at
  %after = getelementptr i64, ptr %at, i64 1
  store ptr %after, ptr %cursor
  ret i64 %word
}}

define ptr @xpgrad_run(ptr %self, ptr %args, i64 %given) {{
entry:
  %cursor = alloca ptr
  %table = getelementptr i8, ptr %self, i64 {table}
  store ptr %table, ptr %cursor
  %count = call i64 @next(ptr %cursor)
  %constants = call i64 @next(ptr %cursor)
  %groups = call i64 @next(ptr %cursor)
  %widest = call i64 @next(ptr %cursor)
  %release = call i64 @next(ptr %cursor)
  %all = add i64 %count, %constants
  %arrays = alloca ptr, i64 %all
  %pointers = alloca ptr, i64 %widest
  %right = icmp eq i64 %given, %count
  br i1 %right, label %arguments, label %refuse

arguments:
  %i = phi i64 [0, %entry], [%i1, %found]
  %done = icmp eq i64 %i, %count
  br i1 %done, label %addresses, label %argument
argument:
  %at.arg = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %at.arg
  %dtype = call i64 @next(ptr %cursor)
  %scalar = call i64 @next(ptr %cursor)
  %flags = call i64 @next(ptr %cursor)
  %rank = call i64 @next(ptr %cursor)
  %at.class = getelementptr i8, ptr %arg, i64 {cls}
  %class = load i64, ptr %at.class
  %is.scalar = icmp eq i64 %class, %scalar
  br i1 %is.scalar, label %number, label %not.number
number:
  %value = getelementptr i8, ptr %arg, i64 {scalar}
  br label %found
not.number:
  %array.class = ptrtoint ptr @PyArray_Type to i64
  %is.array = icmp eq i64 %class, %array.class
  br i1 %is.array, label %array, label %refuse
array:
  %at.dtype = getelementptr i8, ptr %arg, i64 {dtype}
  %has.dtype = load i64, ptr %at.dtype
  %same.dtype = icmp eq i64 %has.dtype, %dtype
  %at.flags = getelementptr i8, ptr %arg, i64 {flags}
  %has.flags32 = load i32, ptr %at.flags
  %has.flags = zext i32 %has.flags32 to i64
  %common = and i64 %has.flags, %flags
  %same.flags = icmp eq i64 %common, %flags
  %at.rank = getelementptr i8, ptr %arg, i64 {rank}
  %has.rank32 = load i32, ptr %at.rank
  %has.rank = sext i32 %has.rank32 to i64
  %same.rank = icmp eq i64 %has.rank, %rank
  %same1 = and i1 %same.dtype, %same.flags
  %same2 = and i1 %same1, %same.rank
  br i1 %same2, label %axes, label %refuse
axes:
  %at.shape = getelementptr i8, ptr %arg, i64 {shape}
  %lengths = load ptr, ptr %at.shape
  br label %axis
axis:
  %k = phi i64 [0, %axes], [%k1, %same.length]
  %no.more = icmp eq i64 %k, %rank
  br i1 %no.more, label %right.shape, label %length
length:
  %wanted = call i64 @next(ptr %cursor)
  %at.length = getelementptr i64, ptr %lengths, i64 %k
  %has.length = load i64, ptr %at.length
  %is.length = icmp eq i64 %wanted, %has.length
  br i1 %is.length, label %same.length, label %refuse
same.length:
  %k1 = add i64 %k, 1
  br label %axis
right.shape:
  %at.data = getelementptr i8, ptr %arg, i64 {data}
  %data = load ptr, ptr %at.data
  br label %found
found:
  %place = phi ptr [%value, %number], [%data, %right.shape]
  %to = getelementptr ptr, ptr %arrays, i64 %i
  store ptr %place, ptr %to
  %i1 = add i64 %i, 1
  br label %arguments

addresses:
  %c = phi i64 [%count, %arguments], [%c1, %address]
  %all.found = icmp eq i64 %c, %all
  br i1 %all.found, label %start, label %address
address:
  %constant = call i64 @next(ptr %cursor)
  %to.constant = getelementptr ptr, ptr %arrays, i64 %c
  store i64 %constant, ptr %to.constant
  %c1 = add i64 %c, 1
  br label %addresses

start:
  %releases = icmp ne i64 %release, 0
  br i1 %releases, label %unlock, label %run
unlock:
  %saved = call ptr @PyEval_SaveThread()
  br label %run
run:
  %thread = phi ptr [null, %start], [%saved, %unlock]
  br label %each
each:
  %g = phi i64 [0, %run], [%g1, %group.end]
  %finished = icmp eq i64 %g, %groups
  br i1 %finished, label %end, label %group
group:
  %times = call i64 @next(ptr %cursor)
  %steps = call i64 @next(ptr %cursor)
  %body = load ptr, ptr %cursor
  br label %again
again:
  %t = phi i64 [0, %group], [%t1, %again.end]
  store ptr %body, ptr %cursor
  br label %step
step:
  %s = phi i64 [0, %again], [%s1, %after]
  %kernel = call i64 @next(ptr %cursor)
  %width = call i64 @next(ptr %cursor)
  %numbers = call i64 @next(ptr %cursor)
  %place.numbers = call i64 @next(ptr %cursor)
  br label %pointer
pointer:
  %p = phi i64 [0, %step], [%p1, %set]
  %ready = icmp eq i64 %p, %width
  br i1 %ready, label %find.numbers, label %find
find:
  %which = call i64 @next(ptr %cursor)
  %offset = call i64 @next(ptr %cursor)
  %advance = call i64 @next(ptr %cursor)
  %is.list = icmp slt i64 %which, 0
  br i1 %is.list, label %listed, label %even
listed:
  %twice = mul i64 %t, 2
  %position = add i64 %offset, %twice
  %at.which = getelementptr i64, ptr %table, i64 %position
  %listed.which = load i64, ptr %at.which
  %at.offset = getelementptr i64, ptr %at.which, i64 1
  %listed.offset = load i64, ptr %at.offset
  br label %set
even:
  %distance = mul i64 %t, %advance
  %even.offset = add i64 %offset, %distance
  br label %set
set:
  %array.number = phi i64 [%listed.which, %listed], [%which, %even]
  %byte = phi i64 [%listed.offset, %listed], [%even.offset, %even]
  %at.base = getelementptr ptr, ptr %arrays, i64 %array.number
  %base = load ptr, ptr %at.base
  %begin = getelementptr i8, ptr %base, i64 %byte
  %to.pointer = getelementptr ptr, ptr %pointers, i64 %p
  store ptr %begin, ptr %to.pointer
  %p1 = add i64 %p, 1
  br label %pointer
find.numbers:
  %at.list = load ptr, ptr %cursor
  %is.here = icmp eq i64 %place.numbers, 0
  %size = mul i64 %t, %numbers
  %at.numbers = add i64 %place.numbers, %size
  %elsewhere = getelementptr i64, ptr %table, i64 %at.numbers
  %list = select i1 %is.here, ptr %at.list, ptr %elsewhere
  %length.here = select i1 %is.here, i64 %numbers, i64 0
  %beyond = getelementptr i64, ptr %at.list, i64 %length.here
  store ptr %beyond, ptr %cursor
  %function = inttoptr i64 %kernel to ptr
  %status = call i32 %function(ptr %pointers, ptr %list)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %after, label %end
after:
  %s1 = add i64 %s, 1
  %no.step = icmp eq i64 %s1, %steps
  br i1 %no.step, label %again.end, label %step
again.end:
  %t1 = add i64 %t, 1
  %no.time = icmp eq i64 %t1, %times
  br i1 %no.time, label %group.end, label %again
group.end:
  %g1 = add i64 %g, 1
  br label %each
end:
  %result = phi ptr [@_Py_NoneStruct, %each], [@_Py_FalseStruct, %find.numbers]
  br i1 %releases, label %lock, label %return
lock:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %return
return:
  %answer = phi ptr [%result, %end], [%result, %lock]
  call void @Py_IncRef(ptr %answer)
  ret ptr %answer
refuse:
  call void @Py_IncRef(ptr @_Py_NotImplementedStruct)
  ret ptr @_Py_NotImplementedStruct
}}
"""
