"""`lrcnet data`: list the data that the tasks need and its local state, or download it from its official source."""

import argparse

HELP = "list the data sets of the tasks, or download one from its official source"
EXAMPLE = "lrcnet data get psmnist --data ~/data"
GROUP = "the paper"

# Each action: what it does, an example, and what it does with the folder.
ACTIONS = {
    "list": ("files that each task needs, and their local state", "example:\n  lrcnet data list", "search"),
    "get": ("download, check and unpack the data of one task", f"example:\n  {EXAMPLE}", "fill"),
}
STATES = {"intact": "intact", "other": "here, with another checksum", "missing": "not here"}


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="the actions", dest="action", metavar="list|get", required=True)
    for name, (what, example, folder) in ACTIONS.items():
        sub = actions.add_parser(
            name, help=what, description=what, epilog=example, formatter_class=parser.formatter_class
        )
        add = sub.add_argument_group("the data").add_argument
        if name == "get":
            add("name", metavar="NAME", help="name of the task, as in `lrcnet data list`")
        add("--data", metavar="DIR", help=f"folder to {folder} (default: $LRCNET_DATA, then the cache)")


def run(arguments: argparse.Namespace) -> int:
    from lrcnet_paper.tasks import data_folders, download, sources

    if arguments.action == "get":
        folder = download.get(arguments.name, arguments.data)
        print(f"{arguments.name} is in {folder}")
        return 0
    print(f"looked in {', then '.join(map(str, data_folders.search_path(arguments.data)))}")
    for name, source in sources.SOURCES.items():
        print(f"{name}: {source.citation}")
        print(f"  home page: {source.homepage}")
        print(f"  licence: {source.licence}")
        states = download.file_states(name, arguments.data)
        for file in source.files:
            print(f"  {file.name}, {file.megabytes:g} MB: {STATES[states[file.name]]}")
        variants = download.available_variants(name, arguments.data)
        print(f"  variants that can be read: {', '.join(variants) or 'none'}")
    return 0
