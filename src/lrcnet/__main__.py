"""`python -m lrcnet`: the command line, for machines where the folder of scripts is not on the path."""

from lrcnet.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
