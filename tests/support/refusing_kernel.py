"""Run a program under a kernel that refuses user namespaces or Landlock, by a filter of system calls.

This file is run as a script: `refusing_kernel.py user-namespaces,landlock program argument…`.
"""

import ctypes
import os
import platform
import struct
import sys

ALLOW, REFUSE = 0x7FFF0000, 0x00050000  # the second with an error number in its low half
EPERM, ENOSYS = 1, 38
CLONE_NEWUSER = 0x10000000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
LOAD, IF_EQUAL, IF_SET, RETURN = 0x20, 0x15, 0x45, 0x06  # operations of the filter
NUMBER, FLAGS = 0, 16  # where they are in what the filter sees

CLONE, UNSHARE = {"x86_64": (56, 272), "aarch64": (220, 97)}[platform.machine()]
CLONE3 = 435  # its flags are in memory, which a filter cannot read; the C library then uses clone
LANDLOCK = (444, 445, 446)

Instruction = tuple[int, int, int, int]  # operation, jumps if true and if false, operand


def refuse(number: int, error: int) -> list[Instruction]:
    return [(IF_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE | error)]


def refuse_new_users(number: int) -> list[Instruction]:
    return [
        (IF_EQUAL, 0, 4, number),
        (LOAD, 0, 0, FLAGS),
        (IF_SET, 0, 1, CLONE_NEWUSER),
        (RETURN, 0, 0, REFUSE | EPERM),
        (RETURN, 0, 0, ALLOW),
    ]


def install(program: list[Instruction]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    order = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, FILTER, order, 0, 0)):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "the filter cannot be installed")


def main() -> None:
    refused, argv = sys.argv[1].split(","), sys.argv[2:]
    program: list[Instruction] = [(LOAD, 0, 0, NUMBER)]
    if "user-namespaces" in refused:
        program += [*refuse(CLONE3, ENOSYS), *refuse_new_users(CLONE), *refuse_new_users(UNSHARE)]
    if "landlock" in refused:
        program += [each for number in LANDLOCK for each in refuse(number, ENOSYS)]
    install([*program, (RETURN, 0, 0, ALLOW)])
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main()
