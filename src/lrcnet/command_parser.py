"""The arguments of `lrcnet`: a parser per command, help in groups, and the nearest valid name for a mistake."""

import argparse
import difflib
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

from lrcnet.plugins import find_entry_points
from lrcnet.terminal import columns
from lrcnet.version import __version__

# Each command is a module with HELP, EXAMPLE, GROUP, configure(parser) and run(arguments) -> exit code, registered as
# an entry point. A module imports what it needs inside `run`, so that --help is quick. A command that does not answer
# at once has a STATUS, the text to show while it starts.
COMMANDS = find_entry_points("lrcnet.commands")

# The order of the groups in the help; a group that is not listed here follows them.
GROUPS = ("your own data", "the paper", "trained networks", "this installation")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """A formatter that keeps line breaks and wraps every line of a description or an example that is too long."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(self._wrap(indent + line, width) for line in text.splitlines())

    @staticmethod
    def _wrap(line: str, width: int) -> str:
        if len(line) <= width:
            return line
        if not line.startswith("  lrcnet "):
            return textwrap.fill(line, width)
        # A command is continued before a flag, so that it can be pasted into a shell.
        lines = [""]
        for piece in re.split(r" (?=--)", line):
            if lines[-1] and len(lines[-1]) + len(piece) > width - 3:
                lines.append("   ")
            lines[-1] += f" {piece}" if lines[-1] else piece
        return " \\\n".join(lines)

    def _get_default_metavar_for_optional(self, action: argparse.Action) -> str:
        return "N" if action.type is int else "X" if action.type is float else "NAME"


class Parser(argparse.ArgumentParser):
    """A parser whose errors look like those of the commands: one line, with the nearest valid name."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Keep the arguments, so that `error` can look for a mistyped flag among them."""
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """End the program with one line about the mistake."""
        if "arguments are required" in message:
            # The flag that is missing may be there, mistyped.
            flags = [flag for action in self._actions for flag in action.option_strings]
            names = [name.partition("=")[0] for name in self._given if name.startswith("--")]
            message += "".join(_suggest(name, flags) for name in names if name not in flags)
        given = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if given:
            valid = re.findall(r"[\w.-]+", given[2])
            message = f"{given[1]!r} is none of {', '.join(valid)}{_suggest(given[1], valid)}"
        self.exit(2, f"{self.prog}: {message}{'' if message.endswith('?') else ';'} see {self.prog} --help\n")

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End the program because of arguments that the command does not have."""
        flags = [flag for action in self._actions for flag in action.option_strings]
        self.error(f"there is no argument {unknown[0]}{_suggest(unknown[0].partition('=')[0], flags)}")


def build_parser() -> Parser:
    """Build the parser of every subcommand."""
    modules = {name: point.load() for name, point in COMMANDS.items()}
    parser = Parser(
        prog="lrcnet",
        usage="lrcnet COMMAND ...",
        description="Liquid recurrent networks for PyTorch, and the paper behind them.",
        epilog=_list_commands({name: (module.GROUP, module.HELP) for name, module in modules.items()}),
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lrcnet {__version__}")
    subparsers = parser.add_subparsers(prog="lrcnet", dest="command", metavar="COMMAND", help=argparse.SUPPRESS)
    for name, module in modules.items():
        sub = subparsers.add_parser(
            name,
            help=module.HELP,
            description=f"{module.HELP[0].upper()}{module.HELP[1:]}.",
            epilog=f"example:\n  {module.EXAMPLE}",
            formatter_class=HelpFormatter,
        )
        module.configure(sub)
        sub.set_defaults(run=module.run, parser=sub, status=getattr(module, "STATUS", ""))
    return parser


def _list_commands(commands: dict[str, tuple[str, str]]) -> str:
    groups = dict.fromkeys([*GROUPS, *(group for group, _ in commands.values())])
    width = max(map(len, commands))
    lines = []
    for group in groups:
        members = [(f"  {name:<{width}}  ", text) for name, (of, text) in commands.items() if of == group]
        wrapped = [
            textwrap.fill(text, min(columns(), 120) - 2, initial_indent=name, subsequent_indent=" " * (width + 4))
            for name, text in members
        ]
        lines += [f"{group}:", *wrapped, ""] if members else []
    return "\n".join([*lines, "lrcnet COMMAND --help shows the options of a command, their defaults and an example."])


def _suggest(given: str, valid: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(given, valid, n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""
