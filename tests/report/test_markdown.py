"""The summary in a pull request."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

from bubblescope.report import markdown


def parse(text: str):
    """The tokens as GitHub's dialect has them, inline ones included."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [*tokens, *(child for token in tokens for child in token.children or ())]


def shown(tokens) -> str:
    """The text that a reader sees."""
    return "".join(token.content for token in tokens if token.type in {"text", "code_inline", "text_special"})


def test_names_put_no_html_into_the_page(samples):
    """The only HTML is the folding that we write."""
    tokens = parse(markdown.render(samples["hostile"]).decode())
    html = {token.content.strip() for token in tokens if token.type.startswith("html")}
    assert all(re.fullmatch(r"<details><summary>[\w ]+</summary>|</details>", block) for block in html), html


def test_names_are_shown_as_they_are(samples):
    """Markdown's own characters reach the reader unharmed."""
    text = shown(parse(markdown.render(samples["hostile"]).decode())).replace("\u200b", "")
    assert r"k[red]<script>alert(1)</script>|`x`\x1b[31m\n@octocat #1 [/bold]" in text
    assert "__init__ $x$" in text


def test_names_call_nobody(samples):
    """A name notifies no user and links no issue."""
    text = markdown.render(samples["hostile"]).decode()
    assert not re.search(r"@\w|(?<!&)#\w|\w://", text)


def test_every_row_has_the_columns_of_its_header(report):
    """A bar in a name makes no column of its own."""
    for block in re.findall(r"(?:^\|.*\n)+", markdown.render(report).decode(), re.MULTILINE):
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(counts) == 1, block


def test_text_at_the_start_of_an_item_starts_nothing():
    """A finding that begins like a list or a heading is a sentence."""
    for text in ("- a", "1. a", "# a", "+ a"):
        tokens = parse("- " + markdown.line(markdown.escape(text)))
        assert [token.type for token in tokens].count("list_item_open") == 1
        assert not any(token.type == "heading_open" for token in tokens)
