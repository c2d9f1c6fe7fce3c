"""Names that C and C++ allow, which follow the user's names where possible."""

from __future__ import annotations

import re

from xpgrad.programs.naming import Names
from xpgrad.programs.scalars import SCALARS

__all__ = ["Identifiers"]

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const const_cast constexpr continue
decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast restrict
return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
#: Functions, macros and types of the headers, and macros that compilers define.
_LIBRARY = """
EOF FP_FAST_FMA FP_FAST_FMAF HUGE_VAL INFINITY INT32_MIN INT64_C INT64_MIN NAN NULL calloc errno exit fabs fabsf float_t fma fmaf free
i386 int32_t int64_t isfinite isinf isnan linux main malloc nearbyint nearbyintf printf puts realloc signbit size_t stderr stdin stdout
uint32_t uint64_t uint8_t unix bcmp bcopy bzero ffs index memccpy memchr memcmp memcpy memmove memset rindex strcat strchr strcmp strcpy
strdup strlen strncat strncmp strncpy strrchr strsep strstr strtok
"""
_FUNCTIONS = [scalar.code for scalar in SCALARS.values() if scalar.form in ("function", "rounding")]


class Identifiers(Names):
    """The names in use in a text of C."""

    __slots__ = ()

    def __init__(self, *taken: str) -> None:
        super().__init__(*_KEYWORDS.split(), *_LIBRARY.split(), *_FUNCTIONS, *(f"{name}f" for name in _FUNCTIONS), *taken)

    def new(self, base: str) -> str:
        """Return an unused name: `base` with invalid characters replaced, and with a number if that name is taken."""
        base = re.sub(r"\W", "_", base, flags=re.ASCII).strip("_") or "v"
        return super().new(base if not base[0].isdigit() else f"v_{base}")
