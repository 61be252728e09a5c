"""`lrcnet bench`: speed, latency, memory and scaling, each beside what it is compared with."""

import argparse

HELP = "measure speed, latency, memory and scaling of the kernels beside LSTM, ncps and the plain loop, in one run"
EXAMPLE = "lrcnet bench kernels latency --json bench.json"


def configure(parser: argparse.ArgumentParser) -> None:
    from lrcnet.benchmarks import BENCHMARKS

    parser.add_argument("names", nargs="*", metavar="|".join(BENCHMARKS), help="what to measure (default: all of it)")
    parser.add_argument("--json", metavar="FILE", help="write the numbers and the machine there")
    parser.add_argument("--picture", metavar="FILE", default="scaling.png", help="where `scaling` draws itself")


def run(arguments: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    from lrcnet.benchmarks import BENCHMARKS, load, measure

    wanted = [(name, load(name)) for name in arguments.names or BENCHMARKS]
    found = measure.machine()
    print(", ".join(f"{name} {value}" for name, value in found.items() if value not in (None, "")))
    records: dict[str, object] = {"machine": found}
    for name, benchmark in wanted:
        print(f"\n{name}", flush=True)
        measurements = benchmark()
        print(measure.as_table(measurements), flush=True)
        records[name] = measure.as_records(measurements)
        if name == "scaling":
            from lrcnet.benchmarks.scaling import draw

            draw(measurements, Path(arguments.picture))
            print(f"drawn in {arguments.picture}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(records, indent=2) + "\n")
    return 0
