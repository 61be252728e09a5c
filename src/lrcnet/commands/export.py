"""`lrcnet export`: a trained network as an ONNX file, or as C99 source."""

import argparse

HELP = "write a trained network as an ONNX file or as C99 source"
EXAMPLE = "lrcnet export c model --out net.c --int16"
GROUP, STATUS = "trained networks", "loading the network"
# Each format: what is written, and an example.
FORMATS = {
    "onnx": ("ONNX file", "example:\n  lrcnet export onnx model --out net.onnx"),
    "c": ("C99 source, with a header beside it", f"example:\n  {EXAMPLE}"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_subparsers(title="the formats", dest="format", metavar="onnx|c", required=True)
    for name, (what, example) in FORMATS.items():
        sub = formats.add_parser(
            name, help=what, description=what, epilog=example, formatter_class=parser.formatter_class
        )
        add = sub.add_argument_group("the network").add_argument
        add("model", metavar="FOLDER", help="folder that model.save or `lrcnet fit` wrote")
        add("--no-dt", action="store_true", help="no argument for the elapsed time: every step is 1")
        add = sub.add_argument_group("the file").add_argument
        add("--out", metavar="FILE", required=True, help="file to write")
        if name == "onnx":
            add("--stream", action="store_true", help="one reading at a time instead of whole sequences")
        else:
            add("--int16", action="store_true", help="16-bit weights and integer arithmetic (default: float32)")
            add("--own-exp", action="store_true", help="an exponential function of its own instead of libm's")


def run(arguments: argparse.Namespace) -> int:
    from lrcnet.export.names import read_names
    from lrcnet.folders import load, read_extra

    model, names = load(arguments.model), read_names(read_extra(arguments.model))
    timed = False if arguments.no_dt else None
    if arguments.format == "onnx":
        from lrcnet.export import export_onnx

        path = export_onnx(model, arguments.out, streaming=arguments.stream, timed=timed, names=names)
        print(f"wrote {path} ({path.stat().st_size} bytes)")
        return 0
    from lrcnet.export import export_c

    arithmetic = "int16" if arguments.int16 else "float32"
    code = export_c(model, arguments.out, arithmetic=arithmetic, own_exp=arguments.own_exp, timed=timed, names=names)
    print(f"wrote {arguments.out} and its header: {code.cost}")
    print(f"self-test: cc -std=c99 -D{code.name.upper()}_TEST {arguments.out} -lm && ./a.out")
    return 0
