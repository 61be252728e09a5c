"""The command `lrcnet`: show that it has started, run the subcommand, and turn an error into one clear line."""

import os
import sys
from collections.abc import Sequence

from lrcnet import progress
from lrcnet.interruption import EXIT_CODE, answer_at_once

# Errors that a user can cause and fix; any other error is a bug of ours and keeps its traceback.
EXPECTED_ERRORS = (ValueError, TypeError, RuntimeError, OSError, ImportError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = " ".join(["lrcnet", *given[:1]])

    def stopped() -> str:
        return f"{command}: {_describe_interruption()}"

    with progress.shown():
        # The parser needs several times as long as Python itself to start, and more on a busy machine.
        if given and not {"-h", "--help", "--version"} & set(given):
            progress.status(f"starting {command}")
        try:
            with answer_at_once(stopped):
                return _run(given)
        except EXPECTED_ERRORS as error:
            print(f"{command}: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print(stopped(), file=sys.stderr, flush=True)
            if arguments is None:
                # A program that has loaded torch needs most of a second to end in order, while its user waits.
                sys.stdout.flush()
                os._exit(EXIT_CODE)
            return EXIT_CODE


def _run(given: Sequence[str]) -> int:
    from lrcnet.command_parser import build_parser

    parser = build_parser()
    parsed, unknown = parser.parse_known_args(given)
    if unknown:
        getattr(parsed, "parser", parser).refuse(unknown)
    if parsed.command is None:
        parser.print_help()
        return 0
    progress.status(parsed.status)
    code: int = parsed.run(parsed)
    return code


def _describe_interruption() -> str:
    place = f"stopped {progress.position()}".rstrip()
    folder = progress.folder_to_continue()
    return f"{place}; the same command continues it ({folder})" if folder else place


if __name__ == "__main__":
    sys.exit(main())
