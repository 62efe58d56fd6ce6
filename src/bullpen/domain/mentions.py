"""Find the files that a prompt mentions: `@src/app.py`, or `@"my notes.txt"` if the path has spaces."""

import re
from collections.abc import Iterator

MAX_MENTIONS = 100

# As in ui/src/chat/file-mentions.ts: an at sign inside a word, as in an e-mail address, mentions no file.
_MENTION = re.compile(r'(?:^|(?<=[\s(\[{,;]))@(?:"([^"\n]+)"|([^\s"]+))')
_PUNCTUATION = ".,;:!?)]}'"


def find_mentions(text: str) -> Iterator[tuple[str, ...]]:
    """Yield for each mention the paths that it can mean, the most likely first.

    Punctuation after a path may be part of it: `@readme.` can mean the file `readme.` or `readme`.
    """
    for count, found in enumerate(_MENTION.finditer(text)):
        if count == MAX_MENTIONS:
            return
        quoted, word = found.groups()
        yield (quoted,) if quoted else tuple(dict.fromkeys((word, word.rstrip(_PUNCTUATION))))
