"""Prepare the struct types for use in threads.

msgspec describes a Struct to itself when it is decoded for the first time. In version 0.22, two threads that
do so with the same Struct at the same time end the process with a segmentation fault.
"""

from msgspec import Struct
from msgspec.json import Decoder


def prepare_structs(base: type[Struct] = Struct) -> None:
    """Have msgspec describe every Struct that is loaded. Call it before other threads decode one."""
    for each in base.__subclasses__():
        Decoder(each)
        prepare_structs(each)
