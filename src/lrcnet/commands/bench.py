"""`lrcnet bench`: speed, latency, memory and scaling, each measured together with a rival in the same run."""

import argparse

from lrcnet.flags import refuse
from lrcnet.plugins import find_entry_points, load

HELP = "measure speed, latency, memory and scaling of the kernels against LSTM, ncps and the plain loop, in one run"
EXAMPLE = "lrcnet bench kernels latency --json bench.json"
GROUP, STATUS = "this installation", "loading torch"
BENCHMARKS = tuple(find_entry_points("lrcnet.benchmarks"))


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the benchmarks").add_argument
    add("names", nargs="*", metavar="NAME", help=f"names out of {', '.join(BENCHMARKS)} (default: all)")
    add = parser.add_argument_group("files and output").add_argument
    add("--json", metavar="FILE", help="file for the numbers and the description of the machine")
    add("--picture", metavar="FILE", help="file for the picture of `scaling` (default: scaling.png)")
    add("--wide", action="store_true", help="all columns, even if the terminal is narrower")


def run(arguments: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    from lrcnet.benchmarks import measure
    from lrcnet.kernels import gpu_info
    from lrcnet.pages.tables import to_text
    from lrcnet.progress import status
    from lrcnet.terminal import table_width

    if arguments.names and "scaling" not in arguments.names:
        refuse(arguments, ["picture"], "only `scaling` draws a picture")
    points = find_entry_points("lrcnet.benchmarks")
    names = arguments.names or BENCHMARKS
    no_gpu = gpu_info()["reason"]
    if not arguments.names and no_gpu:
        names = [name for name in names if name != "gpu"]
        print(f"the benchmark gpu is left out: {no_gpu}")
    chosen = [(name, load("benchmark", name, points)) for name in names]
    machine = measure.machine()
    print(", ".join(f"{name} {value}" for name, value in machine.items() if value not in (None, "")))
    records: dict[str, object] = {"machine": machine}
    for name, benchmark in chosen:
        status(f"measuring {name}")
        measurements = benchmark()
        print(f"\n{to_text(measure.as_table(name, measurements), table_width(arguments.wide))}", flush=True)
        records[name] = measure.as_records(measurements)
        if name == "scaling":
            from lrcnet.benchmarks.scaling import draw

            picture = arguments.picture or "scaling.png"
            draw(measurements, Path(picture))
            print(f"wrote {picture}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(records, indent=2) + "\n")
    return 0
