"""Scripts of the scripted agent for the screenshots, and the files that its agents change."""

from pathlib import Path
from typing import Any

Step = dict[str, Any]

LOAD = """\
def load(path: Path) -> Tile:
    \"\"\"Reads a tile, from the cache when it is there.\"\"\"
    if path in _cache:
        return _cache[path]
    tile = Tile.parse(path.read_bytes())
    _cache[path] = tile
    return tile
"""
LOADED = """\
def load(path: Path) -> Tile:
    \"\"\"Reads a tile, from the cache when it is there.\"\"\"
    with _lock:
        if path not in _cache:
            _cache[path] = Tile.parse(path.read_bytes())
        return _cache[path]
"""
HEAD = "from pathlib import Path\n\nfrom .tile import Tile\n\n_cache: dict[Path, Tile] = {}\n\n\n"
LOCKED = HEAD.replace("import Path\n", "import Path\nfrom threading import Lock\n").replace(
    "= {}\n", "= {}\n_lock = Lock()\n"
)
TEST = """\
from atlas import tiles


def test_import(tmp_path: Path) -> None:
    assert tiles.load(tmp_path / "a.tile").size == 256
"""
NOTES = """\
# The tile cache

Tiles are read once and kept. Two rules make that safe:

1. **One reader at a time.** `load` holds a lock while it looks and while it fills.
2. **Nothing is written back.** A tile that changed on disk has another name.

| what | before | after |
| --- | ---: | ---: |
| cold start | 840 ms | 845 ms |
| a second map | 310 ms | 12 ms |
| failing imports | 1 in 10 | none in 5,000 |

```python
tile = tiles.load(Path("berlin/14/8802/5373.tile"))
```

> Measured with `make bench` on the map of Berlin.
"""
FOUND = """\
It is a race, not the test. Two threads ask for the same tile: both find the cache empty, and the second one
**replaces** what the first already handed out.

A lock around *look* and *fill* is enough:
"""
FASTER = """\
The second map now opens in **12 ms** instead of 310:

- tiles stay parsed, not only read
- the cache knows its size and lets the oldest go
- `make bench` prints both numbers

```python
@lru_cache(maxsize=4096)
def load(path: Path) -> Tile:
    return Tile.parse(path.read_bytes())
```
"""


def files() -> dict[str, str]:
    return {
        "README.md": "# Atlas\n\nMaps that open at once.\n",
        "atlas/__init__.py": "",
        "atlas/tile.py": "class Tile:\n    size = 256\n",
        "atlas/tiles.py": HEAD + LOAD,
        "docs/cache.md": "# The tile cache\n\nTiles are read once and kept.\n",
        "tests/test_import.py": TEST,
    }


def changed_files() -> dict[str, str]:
    """Return the files that the agent has already changed."""
    return {
        "docs/cache.md": NOTES,
        "tests/test_import.py": TEST.replace("from", "from pathlib import Path\n\nfrom", 1),
    }


def permission_request(workspace: Path) -> list[Step]:
    change = {
        "type": "diff",
        "path": str(workspace / "atlas/tiles.py"),
        "oldText": HEAD + LOAD,
        "newText": LOCKED + LOADED,
    }
    call = {"toolCallId": "edit", "title": "Edit atlas/tiles.py", "kind": "edit", "content": [change]}
    options = [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]
    return [
        {
            "do": "thought",
            "text": "One failure in ten smells like a race. Who else reads tiles while the test runs?",
        },
        {"do": "update", "update": plan("completed", "in_progress", "pending")},
        _tool("read", "Read atlas/tiles.py", HEAD + LOAD),
        _tool(
            "execute",
            "pytest tests/test_import.py --count 50",
            "F" + "." * 8 + "F" + "." * 40 + "\n2 failed, 48 passed in 3.41s",
            rawInput={"command": "pytest tests/test_import.py --count 50"},
        ),
        {"do": "chunk", "text": FOUND},
        {"do": "tool", **call, "status": "pending"},
        {
            "do": "ask",
            "method": "session/request_permission",
            "params": {"toolCall": call, "options": options},
        },
    ]


def plan(*statuses: str) -> Step:
    steps = ("Reproduce the failure", "Find who else reads tiles", "Fix it, and run the test 5,000 times")
    entries = [
        {"content": step, "priority": "medium", "status": status}
        for step, status in zip(steps, statuses, strict=True)
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def finished_turn() -> list[Step]:
    return [{"do": "thought", "text": "Parsing dominates, not reading."}, {"do": "chunk", "text": FASTER}]


def running_turn() -> list[Step]:
    return [
        {"do": "chunk", "text": "I go through the merged changes since 1.4 and group them.\n"},
        _tool(
            "execute", "git log --oneline v1.4..HEAD", "e1f0c5a Keep tiles parsed\n9b1d2e7 Draw borders last"
        ),
        {"do": "wait_cancel"},
    ]


def failing_turn() -> list[Step]:
    return [{"do": "chunk", "text": "I install what the page needs.\n"}, {"do": "exit", "code": 1}]


def _tool(kind: str, title: str, output: str, **more: Any) -> Step:
    content = [{"type": "content", "content": {"type": "text", "text": f"```\n{output}\n```"}}]
    return {"do": "tool", "kind": kind, "title": title, "content": content, "status": "completed", **more}


def page() -> str:
    """Return the example web page, a map."""
    return f"<!doctype html><title>Atlas</title><style>{STYLE}</style>{BODY.format(tiles=_tiles())}"


def _tiles() -> str:
    places = [(x, y) for x in range(10) for y in range(5)]
    return "".join(
        f'<rect x="{x * 60}" y="{y * 60}" width="58" height="58" rx="6" fill="{_sea_colour(x, y)}"/>'
        for x, y in places
    )


def _sea_colour(x: int, y: int) -> str:
    return f"hsl({165 + (x * 7 + y * 13) % 50} 45% {62 + x * y % 4 * 6}%)"


STYLE = """
body { margin: 0; padding: 28px; font: 15px/1.5 system-ui, sans-serif; color: #17324a; background: #f4f8fa }
h1 { margin: 0 0 4px; font-size: 26px }
p { margin: 0 0 18px; color: #4c6579 }
svg { width: 100%; border-radius: 12px; background: #dcebf2 }
path { fill: none; stroke: #fff; stroke-width: 8; stroke-linecap: round }
button { margin-top: 16px; padding: 8px 16px; border: 0; border-radius: 8px; background: #176; color: #fff }
"""
BODY = """<h1>Atlas</h1><p>50 tiles, 12 ms from the cache</p>
<svg viewBox="-10 -10 618 318">{tiles}<path d="M0 210 C120 150 180 260 300 180 S480 120 600 170"/></svg>
<button>Draw it again</button>"""
