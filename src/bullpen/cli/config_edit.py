"""Change one setting in the text of config.toml, and keep its comments and its other lines.

A change is a guess about lines, which is used only if the changed text is parsed as intended.
"""

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from ..domain.errors import Conflict, Invalid


def read_config(path: Path) -> str:
    """Return the text of config.toml; raise Invalid if it is not TOML."""
    try:
        text = path.read_text()
        tomllib.loads(text)
    except FileNotFoundError:
        return ""
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} is not valid TOML: {error}") from None
    return text if text.endswith("\n") or not text else f"{text}\n"


def replace_config(path: Path, text: str) -> None:
    """Replace config.toml atomically. A new file is private, because a setting may be a secret."""
    file = Path(os.path.realpath(path))  # the file may be a link into a directory of dotfiles
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with NamedTemporaryFile("w", dir=file.parent, prefix=f".{file.name}.", delete=False) as new:
        new.write(text)
    if file.exists():
        os.chmod(new.name, file.stat().st_mode & 0o777)
    os.replace(new.name, file)


def with_setting(text: str, name: str, value: str) -> str:
    """Return the text with a setting changed in its place, or added before the first table.

    Raise Conflict if no such change leads to a text that is parsed as intended.
    """
    wanted = tomllib.loads(text) | tomllib.loads(f"{name} = {value}")
    lines = text.splitlines(keepends=True)
    old = _find(lines, name)
    if old is not None:
        del lines[old]
    places = range(len(lines), -1, -1) if old is None else [old.start, *range(len(lines), -1, -1)]
    for place in places:
        changed = "".join((*lines[:place], f"{name} = {value}\n", *lines[place:]))
        if _means(changed, wanted):
            return changed
    raise Conflict(f"{name} cannot be changed in the configuration file; change it with an editor")


def without_setting(text: str, name: str) -> str:
    """Return the text without a setting; unchanged if it does not contain the setting.

    Raise Conflict if the lines of the setting cannot be found.
    """
    lines = text.splitlines(keepends=True)
    if name in tomllib.loads(text):
        old = _find(lines, name)
        if old is None:
            raise Conflict(f"{name} cannot be found in the configuration file; remove it with an editor")
        del lines[old]
    return "".join(lines)


def toml_value(value: Any) -> str:
    """Return the value of a setting as TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case None:
            return '""'
        case _:
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _find(lines: list[str], name: str) -> slice | None:
    """Return the lines to delete so that only the setting `name` goes; None if there are no such lines."""
    wanted = tomllib.loads("".join(lines))
    if wanted.pop(name, None) is None:
        return None
    for start in (number for number, line in enumerate(lines) if name in line):
        for end in range(start + 1, len(lines) + 1):
            if _means("".join((*lines[:start], *lines[end:])), wanted):
                return slice(start, end)
    return None


def _means(text: str, wanted: Mapping[str, Any]) -> bool:
    """Return whether a text is TOML with exactly these values."""
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False
