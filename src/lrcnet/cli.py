"""The command `lrcnet`: find the subcommand, run it, and turn an error into one clear line."""

import argparse
import sys
from collections.abc import Sequence

from lrcnet.plugins import find_entry_points
from lrcnet.version import __version__

# Each command is a module with HELP, EXAMPLE, configure(parser) and run(arguments) -> exit code, registered as an entry
# point. A module imports what it needs inside `run`, so that --help is quick.
COMMANDS = tuple(find_entry_points("lrcnet.commands"))

# Errors that a user can cause and fix; any other error is a bug of ours and keeps its traceback.
EXPECTED_ERRORS = (ValueError, TypeError, RuntimeError, OSError, ImportError)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of every subcommand."""
    parser = argparse.ArgumentParser(prog="lrcnet", description="Liquid recurrent networks and the paper behind them.")
    parser.add_argument("--version", action="version", version=f"lrcnet {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, point in find_entry_points("lrcnet.commands").items():
        module = point.load()
        sub = subparsers.add_parser(
            name,
            help=module.HELP,
            description=module.HELP,
            epilog=f"example:\n  {module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(sub)
        sub.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code."""
    parsed = build_parser().parse_args(arguments)
    try:
        code: int = parsed.run(parsed)
    except EXPECTED_ERRORS as error:
        print(f"lrcnet {parsed.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"lrcnet {parsed.command}: interrupted", file=sys.stderr)
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main())
