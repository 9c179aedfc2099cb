"""The directive ``commands``: a section for every command of ``gmil``, from the code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from gmil.cli.examples import HELP
from gmil.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

WIDTH = 80
_NAMES = "|".join(sorted(HELP.keys() - {"gmil"}, key=len, reverse=True))
_CODE = re.compile(rf"(?<![\w-])(--?[a-z][\w-]*|(?:{_NAMES})\b|[a-z]+\.csv|tcp://\S+\d)")


class Commands(SphinxDirective):
    """Usage, help, options and examples of every command."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each command; those of a group lie inside its section."""
        root = click.Context(main, info_name="gmil")
        return [self._section(root), *(self._section(each) for each in _below(root))]

    def _section(self, context: click.Context) -> nodes.section:
        path, command = context.command_path, context.command
        section = nodes.section("", nodes.title("", "", nodes.literal(path, path)), ids=[nodes.make_id(path)])
        section += _paragraphs(command.help or "")
        section += _code(_usage(context))
        section += self._options(context)
        section += _code("\n".join(HELP[path].examples))
        if context.parent is not None:  # the commands of gmil itself are sections beside it
            section += [self._section(each) for each in _below(context)]
        self.state.document.note_implicit_target(section, section)
        return section

    def _options(self, context: click.Context) -> nodes.definition_list:
        found = nodes.definition_list(classes=["command-options"])
        for parameter in context.command.get_params(context):
            record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
            if record is not None and "--help" not in parameter.opts:
                found += self._option(context, parameter, *record)
        return found

    def _option(
        self, context: click.Context, parameter: click.Parameter, usage: str, text: str
    ) -> nodes.definition_list_item:
        anchor = nodes.make_id(f"{context.command_path} {parameter.opts[-1].lstrip('-')}")
        term = nodes.term("", "", nodes.literal(usage, usage), ids=[anchor])
        for name in parameter.opts:
            self.env.domains.standard_domain.add_program_option(context.command_path, name, self.env.docname, anchor)
        return nodes.definition_list_item("", term, nodes.definition("", *_paragraphs(text)))


def _below(context: click.Context) -> Iterator[click.Context]:
    """Yield the commands of a group, imported, each with its context."""
    for name, command in getattr(context.command, "commands", {}).items():
        yield click.Context(command, info_name=name, parent=context)


def _usage(context: click.Context) -> str:
    formatter = click.HelpFormatter(width=WIDTH)
    formatter.write_usage(context.command_path, " ".join(context.command.collect_usage_pieces(context)), prefix="")
    return formatter.getvalue().strip()


def _paragraphs(text: str) -> list[nodes.paragraph]:
    blocks = re.split(r"\n\s*\n", text.replace("\b", "").strip())
    return [nodes.paragraph("", "", *_marked(" ".join(block.split()))) for block in blocks if block]


def _marked(text: str) -> Iterator[nodes.Node]:
    """Yield the text with options and commands as code."""
    for position, part in enumerate(_CODE.split(text)):
        if part:
            yield nodes.literal(part, part) if position % 2 else nodes.Text(part)


def _code(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="text")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
