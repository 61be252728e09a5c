"""`lrcnet fit`: a network for a user's own table, measured beside an LSTM and gradient boosting."""

import argparse

HELP = "train a network on your own CSV or Parquet file, and measure it beside an LSTM and gradient boosting"
EXAMPLE = "lrcnet fit readings.csv --id patient --time timestamp --target label --out model"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="table with one row per reading (long) or per series (wide)")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder for the network, its measures and a report")
    parser.add_argument("--id", metavar="COLUMN", help="column that names the series of a row (default: one series)")
    parser.add_argument("--time", metavar="COLUMN", help="column of times, numbers or dates (default: evenly spaced)")
    parser.add_argument("--target", metavar="COLUMN", help="column to predict (default: forecast the next reading)")
    parser.add_argument("--channels", metavar="COLUMN", nargs="+", help="columns of values (default: all others)")
    parser.add_argument("--categorical", metavar="COLUMN", nargs="+", default=[], help="channels that are categories")
    parser.add_argument(
        "--task", metavar="NAME", help="classification, regression or forecast (default: by the target)"
    )
    parser.add_argument("--format", metavar="NAME", help="long or wide (default: by the ids)")
    parser.add_argument("--sort", action="store_true", help="sorting of the rows by time")
    parser.add_argument("--model", metavar="LAYER", default="lrcu", help="name of the layer (default: lrcu)")
    parser.add_argument("--units", type=int, default=32, metavar="N", help="number of hidden units (default: 32)")
    parser.add_argument("--epochs", type=int, default=100, metavar="N", help="largest number of epochs (default: 100)")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of split, weights and batches (default: 0)"
    )


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    from lrcnet.errors import one_of
    from lrcnet.layers import LAYERS
    from lrcnet.own_data.encoding import encode
    from lrcnet.own_data.files import read_file
    from lrcnet.own_data.folder import REPORT, check_target_folder, write_folder
    from lrcnet.own_data.schema import understand

    one_of("--model", arguments.model, LAYERS)
    check_target_folder(arguments.out)
    frame = read_file(arguments.file)
    schema = understand(
        frame,
        id=arguments.id,
        time=arguments.time,
        target=arguments.target,
        channels=arguments.channels,
        categorical=arguments.categorical,
        task=arguments.task,
        layout=arguments.format,
    )
    readings = encode(frame, schema, with_targets=True, sort=arguments.sort)

    from pathlib import Path

    from lrcnet.own_data.fit import comparison, describe, fit
    from lrcnet.pages.tables import to_text

    print("\n".join(describe(schema, readings)), flush=True)
    result = fit(
        schema,
        readings,
        cell=arguments.model,
        seed=arguments.seed,
        tell=lambda line: print(line, flush=True),
        units=arguments.units,
        epochs=arguments.epochs,
    )
    table = comparison(result)
    folder = write_folder(result, arguments.out, Path(arguments.file).name)
    print(f"\n{to_text(table)}\n\n{table.note}\n\nwritten to {folder}; open {folder / REPORT}")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    for name in ("units", "epochs"):
        if getattr(arguments, name) < 1:
            raise ValueError(f"--{name} must be at least 1, but is {getattr(arguments, name)}")
    if arguments.seed < 0:
        raise ValueError(f"--seed must be at least 0, but is {arguments.seed}")
    if arguments.sort and arguments.time is None:
        raise ValueError("--sort sorts by time, but --time is not given; name its column")
