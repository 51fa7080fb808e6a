#!/usr/bin/env python3
"""Every relative link in the Markdown leads to a file, and to a heading if it says so."""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = {"target", "build", "results", "node_modules"}  # and everything hidden

FENCE = re.compile(r"^\s*(```|~~~)")
CODE = re.compile(r"(`+).+?\1")
INLINE = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'(][^)]*)?\)")
REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s+<?(\S+?)>?(?:\s|$)")
HTML = re.compile(r"<(?:a|img)\s[^>]*?(?:href|src)=[\"']([^\"']+)[\"']", re.IGNORECASE)
HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$")
ANCHOR = re.compile(r"<a\s[^>]*?(?:id|name)=[\"']([^\"']+)[\"']", re.IGNORECASE)
SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*:|//)")


def pages(root: Path) -> Iterator[Path]:
    """The Markdown files below a folder, without what tools made."""
    for path in sorted(root.iterdir()):
        if path.name.startswith(".") or path.name in SKIPPED:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from pages(path)
        elif path.suffix == ".md":
            yield path


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a page outside its code blocks."""
    fence = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        mark = FENCE.match(line)
        if mark and fence in (None, mark[1]):
            fence = None if fence else mark[1]
        elif fence is None:
            yield number, line


@cache
def anchors(path: Path) -> set[str]:
    """What a link into a page can give after '#', as the usual viewers make it."""
    names = set()
    for _, line in prose(path):
        names.update(ANCHOR.findall(line))
        if heading := HEADING.match(line):
            text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            text = text if "`" in text else re.sub(r"<[^>]+>", "", text)
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            name, repeat = slug, 0
            while name in names:
                repeat += 1
                name = f"{slug}-{repeat}"
            names.add(name)
    return names


def problem(page: Path, link: str) -> str | None:
    """What is wrong with a link, or None."""
    name, _, anchor = link.partition("#")
    name = unquote(name).partition("?")[0]
    if name.startswith("/"):
        target = ROOT / name.lstrip("/")
    else:
        target = page.parent / name if name else page
    if not target.exists():
        return "no such file"
    if not target.resolve().is_relative_to(ROOT):
        return "leads out of the project"
    if not anchor or target.suffix != ".md" or unquote(anchor).lower() in anchors(target):
        return None
    return f'no heading "{anchor}" there'


def main() -> int:
    """Prints what is broken; the exit code says whether anything is."""
    files = links = broken = 0
    for page in pages(ROOT):
        files += 1
        for number, line in prose(page):
            text = CODE.sub("", line)
            found = INLINE.findall(text) + REFERENCE.findall(text) + HTML.findall(text)
            for link in found:
                if SCHEME.match(link):
                    continue
                links += 1
                if what := problem(page, link):
                    broken += 1
                    print(f"{page.relative_to(ROOT)}:{number}: link to {link}: {what}")
    print(f"{links} relative links in {files} pages: {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
