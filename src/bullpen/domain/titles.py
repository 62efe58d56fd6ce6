"""Make a short title for a message, from its first words or from the output of a title program."""

import re

MAX_TITLE_LENGTH = 60
_LINE_MARKS = re.compile(r"^(?:[#>*\-\s]+|\d+[.)]\s+|\[[ x]\]\s+)+")  # headings, lists and quotes
_SENTENCE = re.compile(r"(?<=\w\w[.!?])\s")
_QUOTES = "\"'`*“”‘’«»"


def short_title(message: str, images: int = 0) -> str:
    """Return a title for a message: its first sentence, shortened between words.

    A message without words is titled with its number of images.
    """
    line = next((line for line in message.splitlines() if re.search(r"\w", line)), message)
    line = _LINE_MARKS.sub("", line)
    words = " ".join(_SENTENCE.split(line, maxsplit=1)[0].split())
    if not words:
        return "an image" if images == 1 else f"{images} images" if images else "a message"
    return _shorten(words)


def is_short_enough_for_title(message: str) -> bool:
    """Return whether a message can be its own title."""
    return len(message) <= MAX_TITLE_LENGTH and "\n" not in message.strip()


def clean_title(output: str) -> str:
    """Return the title in the output of a title program; empty if there is none."""
    for line in output.splitlines():
        words = " ".join(_LINE_MARKS.sub("", line).strip(f"{_QUOTES} .").split())
        words = re.sub(r"^title:\s*", "", words, flags=re.IGNORECASE).strip(_QUOTES)
        if re.search(r"\w", words):
            return _shorten(words)
    return ""


def _shorten(words: str) -> str:
    """Return the words cut to the length of a title."""
    if len(words) <= MAX_TITLE_LENGTH:
        return words
    start = words[:MAX_TITLE_LENGTH]
    shortened = start.rsplit(" ", 1)[0] if " " in start else start[:-1]
    return shortened.rstrip(" ,;:") + "…"
