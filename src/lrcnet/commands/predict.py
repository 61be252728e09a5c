"""`lrcnet predict`: predictions of a network that `lrcnet fit` trained, for the series of a new table."""

import argparse

from lrcnet.errors import positive_size
from lrcnet.flags import refuse

HELP = "predict the series of a new file with a network that `lrcnet fit` trained"
EXAMPLE = "lrcnet predict model new.csv --out predictions.csv"
GROUP, STATUS = "your own data", "loading the network"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the network and the table").add_argument
    add("model", metavar="MODEL", help="folder that `lrcnet fit` wrote")
    add("file", metavar="FILE", help="table with the columns of the training table; no target needed")
    add("--sort", action="store_true", help="sorting of the rows by time")
    add = parser.add_argument_group("the predictions").add_argument
    add("--out", metavar="FILE", required=True, help="CSV file for the predictions")
    add("--steps", type=int, metavar="N", help="number of readings to forecast (default: 1)")
    add("--allow-seen", action="store_true", help="predictions also for series of the training file")


def run(arguments: argparse.Namespace) -> int:
    from lrcnet.own_data.files import read_file, write_csv
    from lrcnet.own_data.folder import read_folder
    from lrcnet.own_data.predict import predict_table

    fitted = read_folder(arguments.model)
    forecasts = fitted.schema.task == "forecast"
    refuse(arguments, ["allow-seen" if forecasts else "steps"], f"the model does {fitted.schema.task}")
    if fitted.schema.time is None:
        refuse(arguments, ["sort"], "the model was trained without times")
    steps = positive_size("--steps", 1 if arguments.steps is None else arguments.steps)
    predictions = predict_table(
        fitted, read_file(arguments.file), steps=steps, allow_seen=arguments.allow_seen, sort=arguments.sort
    )
    write_csv(predictions, arguments.out)
    print(f"{len(predictions):,} predictions written to {arguments.out}")
    return 0
