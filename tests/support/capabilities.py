"""Make permissions of files apply to root: drop the capabilities that bypass them."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_VERSION = 0x20080522
_DAC_OVERRIDE, _DAC_READ_SEARCH, _FOWNER = 1, 2, 3


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Set(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextmanager
def without_file_capabilities() -> Iterator[None]:
    """Drop the capabilities in this thread and its new threads; a program it executes has all of them."""
    if os.geteuid() != 0:
        yield
        return
    held = _get()
    lower = _get()
    for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH, _FOWNER):
        lower[0].effective &= ~(1 << capability)
    _call("capset", lower)
    try:
        yield
    finally:
        _call("capset", held)


def _get() -> "ctypes.Array[_Set]":
    sets = (_Set * 2)()
    _call("capget", sets)
    return sets


def _call(name: str, sets: "ctypes.Array[_Set]") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(ctypes.byref(_Header(_VERSION, 0)), sets):
        raise OSError(ctypes.get_errno(), name)
