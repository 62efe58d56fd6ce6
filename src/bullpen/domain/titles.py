"""A short title for a message: in its own words, or as a program gave it."""

import re

LONGEST = 60
_MARKS = re.compile(r"^(?:[#>*\-\s]+|\d+[.)]\s+|\[[ x]\]\s+)+")  # of headings, lists and quotes
_SENTENCE = re.compile(r"(?<=\w\w[.!?])\s")
_QUOTES = "\"'`*“”‘’«»"


def short_title(message: str, images: int = 0) -> str:
    """The first sentence of the first line that says something, cut between words."""
    line = next((line for line in message.splitlines() if re.search(r"\w", line)), message)
    line = _MARKS.sub("", line)
    words = " ".join(_SENTENCE.split(line, maxsplit=1)[0].split())
    if not words:
        return "an image" if images == 1 else f"{images} images" if images else "a message"
    return _cut(words)


def is_short(message: str) -> bool:
    """Whether a message needs no other title than itself."""
    return len(message) <= LONGEST and "\n" not in message.strip()


def clean_title(said: str) -> str:
    """The title in what a program answered; empty when there is none."""
    for line in said.splitlines():
        words = " ".join(_MARKS.sub("", line).strip(f"{_QUOTES} .").split())
        words = re.sub(r"^title:\s*", "", words, flags=re.IGNORECASE).strip(_QUOTES)
        if re.search(r"\w", words):
            return _cut(words)
    return ""


def _cut(words: str) -> str:
    if len(words) <= LONGEST:
        return words
    kept = words[:LONGEST].rsplit(" ", 1)[0] if " " in words[:LONGEST] else words[: LONGEST - 1]
    return kept.rstrip(" ,;:") + "…"
