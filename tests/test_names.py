"""No class name is used twice in the sources, except for one class in the server and one in the client."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "bullpen"

# Values that the server sends and the client receives under one name.
ON_BOTH_SIDES = {
    "Attention",
    "DiffComment",
    "DirectoryChoices",
    "DirectoryEntry",
    "DirectoryListing",
    "Event",
    "FileDiff",
    "Image",
    "ImportResult",
    "ImportedSession",
    "InboxItem",
    "LoginCode",
    "Message",
    "Permission",
    "Port",
    "ProjectDirectory",
    "PromptResult",
    "Question",
    "Queue",
    "QueueItem",
    "QueueSettings",
    "Repository",
    "Root",
    "Rule",
    "SearchHit",
    "Session",
    "SessionChanged",
    "SessionPage",
    "SkippedEntry",
    "TimelineMarker",
    "Token",
    "ToolCall",
    "TrashedWorktree",
    "UsageTotals",
    "Worker",
    "Worktree",
}
OTHER_SIDES = ("client", "cli")


def folders_by_class() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path.relative_to(SOURCES).parts[0])
    return found


def test_no_class_name_is_used_twice_except_on_both_sides_of_a_boundary() -> None:
    repeated = {name: folders for name, folders in folders_by_class().items() if len(folders) > 1}
    print(f"{len(repeated)} class names on both sides of a boundary: {' '.join(sorted(repeated))}")
    assert set(repeated) == ON_BOTH_SIDES
    for name, folders in repeated.items():
        assert len(folders) == 2, name
        assert sum(folder in OTHER_SIDES for folder in folders) == 1, name
