"""The command `lrcnet`: finds the subcommand, runs it, and turns an error into one clear line."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from lrcnet.version import __version__

# One module of lrcnet.commands each, with HELP, EXAMPLE, configure(parser) and run(arguments) -> exit code.
# A module imports what it needs inside `run`, so that --help is quick.
COMMANDS = ("info", "data", "demo", "train", "reproduce", "report", "explain", "drive", "bench")

# What a user can cause and mend; anything else is a defect of ours and keeps its traceback.
EXPECTED_ERRORS = (ValueError, TypeError, RuntimeError, OSError, ImportError)


def build_parser() -> argparse.ArgumentParser:
    """The parser of every subcommand."""
    parser = argparse.ArgumentParser(prog="lrcnet", description="Liquid recurrent networks and the paper behind them.")
    parser.add_argument("--version", action="version", version=f"lrcnet {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"lrcnet.commands.{name}")
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
    """Run a command line; returns the exit code."""
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
