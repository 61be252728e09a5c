"""`lrcnet explain`: a page about the inside of a trained network, and bounds on the sensitivity of its output."""

import argparse

HELP = "look into a trained network: attention, activity and gates on a page; its Lipschitz constant"
EXAMPLE = "lrcnet explain runs/person_coarse_lrcu-s_seed0 --data data --html inside.html"
SEQUENCES = 64


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="folder of a run, or one of its .ckpt files")
    parser.add_argument("--html", metavar="FILE", help="file for a page about the network's attention and its neurons")
    parser.add_argument("--lipschitz", action="store_true", help="Lipschitz constant: bounds and empirical value")
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder of the task's files, to measure on its test split; for a driving policy, folder of a recording",
    )
    parser.add_argument(
        "--samples",
        type=int,
        metavar="N",
        help="number of test sequences, or of frames per season (default: 64 with --lipschitz)",
    )
    parser.add_argument(
        "--inputs",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="range of the layer's inputs without --data (default: -1 1); with --data it is the range of the data",
    )
    parser.add_argument("--dt", type=float, default=1.0, help="time for which one input is held (default: 1)")


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    from lrcnet.interpret.subject import read_subject

    subject = read_subject(arguments.checkpoint)
    if arguments.html:
        subject.write_page(arguments.html, arguments.data, arguments.samples)
        print(f"written to {arguments.html}")
    if arguments.lipschitz:
        from lrcnet.theory.sensitivity import sensitivity

        data = subject.layer_inputs(arguments.data, arguments.samples or SEQUENCES) if arguments.data else None
        rows = sensitivity(subject.network, data, inputs=tuple(arguments.inputs or (-1.0, 1.0)), dt=arguments.dt)
        width = max(len(name) for name, _ in rows)
        for name, value in [("weights", subject.weights), *rows]:
            print(f"{name:<{width}}  {value if isinstance(value, str) else f'{value:.6g}'}")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if not arguments.lipschitz and not arguments.html:
        raise ValueError("say what to explain: --lipschitz, or --html FILE for a page")
    if arguments.samples is not None and arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1, but is {arguments.samples}")
    if arguments.data and arguments.inputs:
        raise ValueError("--data determines the range of the inputs, and so does --inputs; leave one of them out")
