"""What of Markdown a reader of it acts on."""

from __future__ import annotations

import re

CODE = re.compile(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)")


def outside_code(text: str) -> str:
    """The text without its spans of code, in which all is shown as it is."""
    return CODE.sub("", text)
