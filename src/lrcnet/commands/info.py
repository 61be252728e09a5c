"""`lrcnet info`: what this installation can do, and why not more."""

import argparse

HELP = "show versions, threads and the state of the fused kernels"
EXAMPLE = "lrcnet info --json"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(arguments: argparse.Namespace) -> int:
    import json

    from lrcnet.environment import info

    found = info()
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    kernels = found.pop("kernels")
    rows = {**found, **{f"kernels: {name}": value for name, value in kernels.items()}}
    width = max(map(len, rows))
    for name, value in rows.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        print(f"{name:<{width}}  {'-' if shown is None or shown == '' else shown}")
    return 0
