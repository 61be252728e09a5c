"""`lrcnet demo`: in progress."""

import argparse

HELP = "train an LRC and a Neural ODE on two dynamical systems and draw them"
EXAMPLE = "lrcnet demo --out demo"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="demo", help="folder for the picture and the numbers (default: demo)")


def run(arguments: argparse.Namespace) -> int:
    return 0
