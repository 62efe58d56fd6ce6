"""Parse the values of settings. Each parser raises ValueError with the end of a sentence."""

import difflib
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .domain.errors import Invalid
from .domain.rules import Rule, read_rule
from .domain.sandbox import LEVELS, SandboxLevel


def parse_path(value: Any) -> Path:
    """Parse a path; `~` is expanded. Raise ValueError, as all of these functions do, for any other value."""
    if not isinstance(value, str) or not value:
        raise ValueError("must be a path")
    return Path(value).expanduser().absolute()


def parse_paths(value: Any) -> tuple[Path, ...]:
    """Parse directories separated by colons, or a list of them."""
    paths = value.split(":") if isinstance(value, str) else value
    if not isinstance(paths, (list, tuple)):
        raise ValueError("must be directories separated by colons")
    return tuple(parse_path(path) for path in paths if path)


def parse_text(value: Any) -> str:
    """Parse text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("must be text")
    return value


def parse_names(value: Any) -> tuple[str, ...]:
    """Parse names separated by commas, or a list of them."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise ValueError("must be a list of names")
    return tuple(name.strip() for name in names if name.strip())


def parse_rules(value: Any) -> tuple[Rule, ...]:
    """Parse rules: tables of config.toml, or the same as JSON."""
    try:
        listed = json.loads(value) if isinstance(value, str) else value
        rules = tuple(read_rule(each) for each in listed)
    except (TypeError, ValueError, Invalid) as error:
        raise ValueError(f"must be a list of rules: {error}") from None
    if len({rule.name for rule in rules}) < len(rules):
        raise ValueError("must be a list of rules, each with a name of its own")
    return rules


def parse_argv(value: Any) -> tuple[str, ...]:
    """Parse a command: text in shell syntax, or a list of words."""
    words = shlex.split(value) if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise ValueError("must be a command, as text or as a list of words")
    return tuple(words)


def parse_web_address(value: Any) -> str:
    """Parse an http or https URL."""
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        raise ValueError("must be an address that begins with http:// or https://")
    return value


def parse_patterns(value: Any) -> tuple[str, ...]:
    """Parse regular expressions: one in each line, or a list of them."""
    patterns = value.split("\n") if isinstance(value, str) else value
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(each, str) for each in patterns):
        raise ValueError("must be a list of regular expressions")
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"has a pattern that is no regular expression ({error}): {pattern}") from None
    return tuple(pattern for pattern in patterns if pattern)


def parse_yes_or_no(value: Any) -> bool:
    """Parse a boolean."""
    words = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    if isinstance(value, bool):
        return value
    if str(value).lower() not in words:
        raise ValueError("must be true or false")
    return words[str(value).lower()]


def parse_number(low: int, high: int) -> Callable[[Any], int]:
    """Return a parser of whole numbers from `low` to `high`."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError(f"must be a whole number from {low} to {high}")
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"must be a whole number from {low} to {high}") from None
        if not low <= number <= high:
            raise ValueError(f"must be from {low} to {high}")
        return number

    return read


def parse_amount(high: int) -> Callable[[Any], float]:
    """Return a parser of numbers from 0 to `high`, which may have a fraction."""
    wanted = f"must be a number from 0 to {high}"

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError(wanted)
        try:
            number = float(value)
        except ValueError:
            raise ValueError(wanted) from None
        if not 0 <= number <= high:  # also false for nan
            raise ValueError(wanted)
        return int(number) if number.is_integer() else number

    return read


_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)(?:i?B)?", re.IGNORECASE)


def parse_size(value: Any) -> int:
    """Parse a number of bytes, which may end with K, M, G or T for the powers of 1024."""
    match = None if isinstance(value, bool) else _SIZE.fullmatch(str(value).strip())
    if match is None:
        raise ValueError("must be a size such as 512M or 16G")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def parse_one_of(*words: str) -> Callable[[Any], str]:
    """Return a parser that accepts one of these words."""

    def read(value: Any) -> str:
        if value in words:
            return str(value)
        near = difflib.get_close_matches(str(value), words, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"must be one of {', '.join(words)}{hint}")

    return read


def parse_level(value: Any) -> SandboxLevel | None:
    """Parse a level of the sandbox; an empty value means none."""
    for level in LEVELS:
        if value == level:
            return level
    parse_one_of("", *LEVELS)(value)
    return None


def parse_optional_path(value: Any) -> Path | None:
    """Parse a path; an empty value means none."""
    return parse_path(value) if value else None
