"""The pages of the documentation: what they link to, and the code blocks that tests run."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import gmil
from gmil.cli.main import main

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
GENERATED = {"_build", "auto_examples", "generated"}
"""Folders of docs that the site is built into, or from."""
PAGES = [
    README,
    ROOT / "CHANGELOG.md",
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if not GENERATED.intersection(path.parts)),
]

_FENCED = re.compile(r"^```([^`\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NUMBER = r"-?\d+\.\d*"  # its last digit may depend on the machine


@dataclass(frozen=True)
class Block:
    """A block of code or commands, and the block of text right below it, which is what they print."""

    language: str
    code: str
    printed: str | None = None

    @property
    def needs(self) -> str | None:
        """What the first line asks for, as in ``# needs: torch``."""
        found = re.match(r"# needs: (\w+)\n", self.code)
        return found and found.group(1)

    @property
    def commands(self):
        """What stands after "gmil" in every line, without comments."""
        return [line.partition("  #")[0] for line in re.findall(r"^gmil (.*)$", self.code, re.MULTILINE)]


def page_named(name):
    """Return the path of a page, such as guide/table."""
    return ROOT / "docs" / f"{name}.md"


def name_of(page):
    """Return the name of a page, such as guide/table."""
    return page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


def blocks_of(page):
    """Return the blocks of a page in order."""
    text = page.read_text(encoding="utf-8")
    return [Block(match[1], match[2], _printed(text[match.end() :])) for match in _FENCED.finditer(text)]


def _printed(rest):
    """Return the block of text that comes next, with nothing before it."""
    found = re.match(r"\n\n```text\n(.*?)^```$", rest, re.DOTALL | re.MULTILINE)
    return found and found[1]


def python_blocks(page):
    """Return the blocks of Python."""
    return [block for block in blocks_of(page) if block.language == "python"]


NEEDS = {"torch": "torch", "dask": "distributed", "video": "av"}
"""The extras that a block may need, and a module that each brings."""


def run_python(block, namespace, page):
    """Run a block; what it prints must be what stands below it. One whose needs are not met is only read."""
    code = compile(block.code, page.name, "exec")
    if block.needs is not None and importlib.util.find_spec(NEEDS[block.needs]) is None:
        check_names(block.code)
        return
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    expect_printed(printed.getvalue(), block.printed or "")


def check_names(code):
    """Fail if the code uses a name of gmil that there is not."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gmil":
            assert hasattr(gmil, node.attr), node.attr


def expect_printed(found, expected):
    """Compare what was printed: words and whole numbers exactly, numbers with a fraction nearly."""
    assert re.sub(_NUMBER, "#", found).split() == re.sub(_NUMBER, "#", expected).split(), found
    values, wanted = (np.array(re.findall(_NUMBER, text), dtype=float) for text in (found, expected))
    np.testing.assert_allclose(values, wanted, rtol=0.02, atol=0.11)


def run_command(words, *further):
    """Run a command in this process, and return what it prints; it must succeed."""
    result = CliRunner().invoke(main, [*shlex.split(words), *further])
    assert result.exit_code == 0, f"gmil {words}: {result.output}"
    return result.stdout


def anchors_of(page):
    """Return the anchors of the headings of a page, as code hosts and MyST make them."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#{1,6} (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).strip().lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in plain}
