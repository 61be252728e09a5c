"""`lrcnet fit`: a network for a user's own table, measured beside an LSTM and gradient boosting."""

import argparse

from lrcnet.flags import refuse

HELP = "train a network on your own CSV or Parquet file, and measure it beside an LSTM and gradient boosting"
EXAMPLE = "lrcnet fit readings.csv --id patient --time timestamp --target label --out model"
GROUP, STATUS = "your own data", "reading the table"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the table").add_argument
    add("file", metavar="FILE", help="table with one row per reading (long) or per series (wide)")
    add("--id", metavar="COLUMN", help="column that names the series of a row (default: one series)")
    add("--time", metavar="COLUMN", help="column of times, numbers or dates (default: evenly spaced)")
    add("--target", metavar="COLUMN", help="column to predict (default: forecast the next reading)")
    add("--channels", metavar="COLUMN", nargs="+", help="columns of values (default: all others)")
    add("--categorical", metavar="COLUMN", nargs="+", default=[], help="channels that are categories (default: none)")
    add("--task", metavar="NAME", help="classification, regression or forecast (default: by the target)")
    add("--format", metavar="NAME", help="long or wide (default: by the ids)")
    add("--sort", action="store_true", help="sorting of the rows by time")
    add = parser.add_argument_group("the network").add_argument
    add("--model", metavar="LAYER", default="lrcu", help="name of the layer (default: lrcu)")
    add("--units", type=int, default=32, metavar="N", help="number of hidden units (default: 32)")
    add("--epochs", type=int, default=100, metavar="N", help="largest number of epochs (default: 100)")
    add("--balanced", action="store_true", help="equal weight for every class, however rare")
    add("--seed", type=int, default=0, metavar="N", help="seed of split, weights and batches (default: 0)")
    add = parser.add_argument_group("files and output").add_argument
    add("--out", metavar="DIR", required=True, help="folder for the network, its measures and a report")
    add("--wide", action="store_true", help="all columns, even if the terminal is narrower")


def run(arguments: argparse.Namespace) -> int:
    if arguments.time is None:
        refuse(arguments, ["sort"], "without --time nothing can be sorted by time")
    from lrcnet.own_data.pipeline import fit_file

    columns = {name: getattr(arguments, name) for name in ("id", "time", "target", "channels", "categorical", "task")}
    fit_file(
        arguments.file,
        arguments.out,
        cell=arguments.model,
        units=arguments.units,
        epochs=arguments.epochs,
        seed=arguments.seed,
        sort=arguments.sort,
        balanced=arguments.balanced,
        tell=lambda line: print(line, flush=True),
        wide=arguments.wide,
        layout=arguments.format,
        **columns,
    )
    return 0
