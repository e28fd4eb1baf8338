"""Help that is laid out in sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Iterator

ARGUMENTS = "Arguments"
OPTIONS = "Options"


class SectionedCommand(TyperCommand):
    """A command whose help lists parameters under the section that each one names.

    The section is typer's ``rich_help_panel``; parameters without one come last.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections in the order in which the first parameter of each comes."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for section, row in self._rows(ctx):
            sections.setdefault(section, []).append(row)
        if OPTIONS in sections:
            sections[OPTIONS] = sections.pop(OPTIONS)
        for name, rows in sections.items():
            with formatter.section(name):
                formatter.write_dl(rows)

    def _rows(self, ctx: Any) -> Iterator[tuple[str, tuple[str, str]]]:
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            name, text = record
            section = getattr(parameter, "rich_help_panel", None)
            if parameter.param_type_name == "argument":
                yield section or ARGUMENTS, (name.partition(" <")[0], text)
            else:
                yield section or OPTIONS, (name, text)
