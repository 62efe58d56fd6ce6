"""Structure-aware mutation for the tests in `tests/fuzz`, and their corpus of inputs that failed before.

A target is a function that takes an input as bytes and raises if a property does not hold. `fuzz` calls it
with mutated valid inputs; `replay` calls it with the files in the corpus of the target.
"""

import copy
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
FULL_FACTOR = 100  # a full run has this many times the examples of a normal run
SEED = int(os.environ.get("BULLPEN_FUZZ_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
CORPUS = Path(__file__).parents[1] / "fuzz/corpus"

DEEP: Any = None
for _ in range(150):
    DEEP = [DEEP]

ODD_VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 1 << 31, 1 << 53, 1 << 63, 1 << 64, 10**30, 1.5, 1e308, -1e308),
    *("", "x", "\0", "a\nb", "\ud800", "é" * 100, "a" * 5000, "../..", "/", "~nosuch", "١٢", "0" * 20),
    *("9999-12-31T23:59:59.999+00:00", "0001-01-01T00:00:00", "not a time", "pending", "agent", "terminal"),
    *([], {}, [[]], [None], {"": None}, [1, "a"], {"type": "x"}, DEEP),
]
ODD_BYTES = [b"", b"\0", b"\xff", b"\xff" * 4, b"\0" * 8, b"\x7f\xff\xff\xff", b"\n", b'"', b"{}", b"[" * 300]


@st.composite
def mutated_json(draw: st.DrawFn, templates: Sequence[Any], changes: int = 3) -> Any:
    """Draw one of the templates with up to `changes` values replaced, removed, added or exchanged."""
    value = copy.deepcopy(draw(st.sampled_from(templates)))
    for _ in range(draw(st.integers(0, changes))):
        value = _changed(draw, value)
    return value


def _changed(draw: st.DrawFn, value: Any) -> Any:
    positions = _positions(value)
    if not positions:
        return odd_value(draw)
    container, key = positions[draw(st.integers(0, len(positions) - 1))]
    match draw(st.sampled_from(["replace", "replace", "replace", "remove", "add", "exchange", "repeat"])):
        case "remove":
            del container[key]
        case "add" if isinstance(container, dict):
            container[draw(st.sampled_from(["", "x", "id", "data", "type"]))] = odd_value(draw)
        case "exchange":
            other, other_key = positions[draw(st.integers(0, len(positions) - 1))]
            container[key] = copy.deepcopy(other[other_key])
        case "repeat" if isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        case _:
            container[key] = odd_value(draw)
    return value


def odd_value(draw: st.DrawFn) -> Any:
    return copy.deepcopy(ODD_VALUES[draw(st.integers(0, len(ODD_VALUES) - 1))])


def _positions(value: Any) -> "list[tuple[Any, Any]]":
    """Return every (container, key) in a JSON value."""
    positions: list[tuple[Any, Any]] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(pairs):
        positions.append((value, key))
        positions += _positions(each)
    return positions


@st.composite
def mutated_bytes(draw: st.DrawFn, templates: Sequence[bytes], changes: int = 4) -> bytes:
    """Draw one of the templates with up to `changes` pieces overwritten, removed, inserted or repeated."""
    data = draw(st.sampled_from(templates))
    for _ in range(draw(st.integers(0, changes))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + draw(st.sampled_from([1, 2, 4, 8, 40, 400])))))
        odd = draw(st.sampled_from(ODD_BYTES) | st.binary(max_size=8))
        match draw(st.sampled_from(["overwrite", "remove", "insert", "repeat", "cut"])):
            case "overwrite":
                data = data[:start] + odd + data[start + len(odd) :]
            case "remove":
                data = data[:start] + data[end:]
            case "insert":
                data = data[:start] + odd + data[start:]
            case "repeat":
                data = data[:end] + data[start:end] + data[end:]
            case "cut":
                data = data[:start]
    return data


def replay(target: str, check: Callable[[bytes], object]) -> None:
    """Check the inputs in the corpus of this target."""
    files = sorted((CORPUS / target).iterdir())
    assert files
    for file in files:
        print(f"corpus {target}: {file.name}")
        check(file.read_bytes())


def fuzz(
    target: str, inputs: st.SearchStrategy[bytes], check: Callable[[bytes], object], examples: int
) -> None:
    """Check `examples` inputs, in a full run FULL_FACTOR times as many. Save a failing one in the corpus."""
    examples *= FULL_FACTOR if FULL else 1
    count = 0

    @settings(max_examples=examples, database=None, phases=[Phase.generate])
    @given(data=inputs)
    def run(data: bytes) -> None:
        nonlocal count
        count += 1
        try:
            check(data)
        except BaseException:
            (CORPUS / target).mkdir(parents=True, exist_ok=True)
            (CORPUS / target / "new-failure").write_bytes(data)
            raise

    (seed(SEED)(run) if FULL else run)()
    print(f"fuzz {target}: {count} examples{f', BULLPEN_FUZZ_SEED={SEED}' if FULL else ''}")
