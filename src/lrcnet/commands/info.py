"""`lrcnet info`: versions, threads and the state of the fused kernels, with the reasons if they cannot be used."""

import argparse

HELP = "show versions, threads and the state of the fused kernels"
EXAMPLE = "lrcnet info --json"
GROUP = "this installation"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument_group("output").add_argument("--json", action="store_true", help="JSON instead of a table")


def run(arguments: argparse.Namespace) -> int:
    import json

    from lrcnet.environment import info

    installation = info()
    if arguments.json:
        print(json.dumps(installation, indent=2))
        return 0
    parts = {part: installation.pop(part) for part in ("kernels", "gpu")}
    rows = {
        **installation,
        **{f"{part}: {name}": value for part, state in parts.items() for name, value in state.items()},
    }
    width = max(map(len, rows))
    for name, value in rows.items():
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        print(f"{name:<{width}}  {'-' if text is None or text == '' else text}")
    return 0
