"""`lrcnet report`: one page of finished runs, as HTML or Markdown."""

import argparse

from lrcnet.flags import refuse

HELP = "make one page of finished runs: tables beside the paper's, verdicts, learning curves, trajectories"
EXAMPLE = "lrcnet report results --html report.html"
GROUP, STATUS = "the paper", "reading the runs"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the runs").add_argument
    add("runs", metavar="RUNS", help="folder of runs, or of the JSON files collected from them")
    add("--artefact", action="append", metavar="NAME", help="name of a table or figure; repeatable (default: all)")
    add = parser.add_argument_group("what to make").add_argument
    add("--html", metavar="FILE", help="file for one self-contained page")
    add("--markdown", metavar="FILE", help="file for a Markdown page; pictures go to a folder beside it")
    add("--collect", metavar="DIR", help="folder for one small JSON file per finished run")


def run(arguments: argparse.Namespace) -> int:
    from lrcnet_paper.reproduction import check_names, write_report
    from lrcnet_paper.results.collected import collect
    from lrcnet_paper.results.reading import read_runs

    if not (arguments.html or arguments.markdown or arguments.collect):
        raise ValueError("say where to write: --html FILE, --markdown FILE, --collect DIR, or several of them")
    if not (arguments.html or arguments.markdown):
        refuse(arguments, ["artefact"], "neither --html nor --markdown is given")
    names = check_names(arguments.artefact)
    runs = read_runs(arguments.runs)
    if not runs:
        print(f"{arguments.runs} holds no finished run: the tables will show the paper's numbers alone")
    if arguments.collect:
        print(f"{len(collect(runs, arguments.collect))} new files in {arguments.collect}")
    if arguments.html or arguments.markdown:
        sections, pages = write_report(runs, names, html=arguments.html, markdown=arguments.markdown)
        for section in sections:
            for reason in section.rendered.skipped:
                print(f"not drawn in {section.name}: {reason}")
        for page in pages:
            print(f"wrote {page}")
    return 0
