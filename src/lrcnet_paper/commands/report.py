"""`lrcnet report`: one page, HTML or Markdown, out of finished runs."""

import argparse

HELP = "make one page of finished runs: tables beside the paper's, verdicts, learning curves, trajectories"
EXAMPLE = "lrcnet report results --html report.html"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUNS", help="folder of runs, or of the JSON files collected from them")
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page")
    parser.add_argument("--markdown", metavar="FILE", help="write Markdown, pictures in a folder of the same name")
    parser.add_argument("--collect", metavar="DIR", help="write one small JSON file per finished run to DIR")
    parser.add_argument("--artefact", action="append", metavar="NAME", help="only this one; may be given several times")


def run(arguments: argparse.Namespace) -> int:
    from lrcnet.errors import one_of
    from lrcnet_paper import artefacts as paper
    from lrcnet_paper import report
    from lrcnet_paper.results.collected import collect
    from lrcnet_paper.results.reading import read_runs

    if not (arguments.html or arguments.markdown or arguments.collect):
        raise ValueError("say where to write: --html FILE, --markdown FILE, --collect DIR, or several of them")
    names = [one_of("artefact", name, paper.ARTEFACTS) for name in arguments.artefact] if arguments.artefact else None
    runs = read_runs(arguments.runs)
    if not runs:
        print(f"{arguments.runs} holds no finished run: the tables will show the paper's numbers alone")
    if arguments.collect:
        print(f"{len(collect(runs, arguments.collect))} new files in {arguments.collect}")
    if not (arguments.html or arguments.markdown):
        return 0
    sections = report.assemble(runs, names)
    for section in sections:
        for reason in section.rendered.skipped:
            print(f"not drawn in {section.name}: {reason}")
    if arguments.html:
        print(f"wrote {report.write_html(sections, runs, arguments.html)}")
    if arguments.markdown:
        print(f"wrote {report.write_markdown(sections, runs, arguments.markdown)}")
    return 0
