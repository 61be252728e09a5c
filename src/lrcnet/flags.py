"""Flags of a command that would have no effect are refused, so that nobody believes they had one."""

import argparse
from collections.abc import Iterable


def refuse(arguments: argparse.Namespace, names: Iterable[str], reason: str) -> None:
    """Raise if one of some flags is given.

    Args:
        arguments: the parsed command line; a flag that is not given is None or False.
        names: flags without their dashes, such as "allow-seen".
        reason: the beginning of the sentence, such as "--list trains nothing".

    Raises:
        ValueError: for the first flag that is given.

    >>> refuse(argparse.Namespace(list=True, data="x"), ["data"], "--list trains nothing")
    Traceback (most recent call last):
    ValueError: --list trains nothing, so --data would have no effect; leave it out
    """
    for name in names:
        value = getattr(arguments, name.replace("-", "_"))
        if value is not None and value is not False:
            raise ValueError(f"{reason}, so --{name} would have no effect; leave it out")
