"""`lrcnet explain`: a page about the inside of a trained network, and bounds on the sensitivity of its output."""

import argparse

from lrcnet.flags import refuse

HELP = "look into a trained network: attention, activity and gates on a page; its Lipschitz constant"
EXAMPLE = "lrcnet explain runs/person_coarse_lrcu-s_seed0 --data data --html inside.html"
GROUP, STATUS = "trained networks", "loading the network"
DATA = "folder of the task's files, for its test split; for a driving policy, folder of a recording; for a fit, a table"
INPUTS = "range of the layer's inputs without --data (default: -1 1); with --data it is the range of the data"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the networks and the data").add_argument
    add("checkpoint", metavar="CHECKPOINT", help="folder of a run or of `lrcnet fit`, or a .ckpt file of a run")
    add("beside", nargs="?", metavar="OTHER", help="a second one, to be shown beside the first on the same data")
    add("--data", metavar="PATH", help=DATA)
    add("--samples", type=int, metavar="N", help="sequences, or frames a season (default: 64; on pages the task's own)")
    add = parser.add_argument_group("what to make").add_argument
    add("--html", metavar="FILE", help="file for a page about the network's attention and its neurons")
    add("--lipschitz", action="store_true", help="Lipschitz constant: bounds and empirical value")
    add = parser.add_argument_group("with --lipschitz").add_argument
    add("--inputs", type=float, nargs=2, metavar=("LOW", "HIGH"), help=INPUTS)
    add("--dt", type=float, metavar="TIME", help="time for which one input is held (default: 1)")


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    from lrcnet.interpret.subject import read_subject

    subject = read_subject(arguments.checkpoint)
    if arguments.html:
        beside = read_subject(arguments.beside) if arguments.beside else None
        subject.write_page(arguments.html, arguments.data, arguments.samples, beside)
        print(f"written to {arguments.html}")
    if arguments.lipschitz:
        from lrcnet.theory.sensitivity import sensitivity

        data = subject.layer_inputs(arguments.data, arguments.samples or 64) if arguments.data else None
        inputs, dt = arguments.inputs or (-1.0, 1.0), 1.0 if arguments.dt is None else arguments.dt
        rows = sensitivity(subject.network, data, inputs=tuple(inputs), dt=dt)
        for name, value in [("weights", subject.weights), *rows]:
            print(f"{name:<{max(len(row[0]) for row in rows)}}  {value if isinstance(value, str) else f'{value:.6g}'}")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if not arguments.lipschitz and not arguments.html:
        raise ValueError("say what to explain: --lipschitz, or --html FILE for a page")
    if arguments.beside and not arguments.html:
        raise ValueError("two networks are compared on a page; add --html FILE, or leave one out")
    if arguments.samples is not None and arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1, but is {arguments.samples}")
    if not arguments.lipschitz:
        refuse(arguments, ["inputs", "dt"], "--lipschitz is not given")
    if not arguments.data and not arguments.html:
        refuse(arguments, ["samples"], "--data is not given")
    if arguments.data and arguments.inputs:
        raise ValueError("--data determines the range of the inputs, and so does --inputs; leave one of them out")
