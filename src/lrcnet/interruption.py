"""Ctrl-C answers within a second, even while one long operation of torch keeps Python busy."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

EXIT_CODE = 130
PATIENCE = 0.4


@contextlib.contextmanager
def answer_at_once(message: Callable[[], str]) -> Iterator[None]:
    """Print a message and end the process if Ctrl-C has not ended the block within a moment.

    Python raises KeyboardInterrupt only between two of its own instructions. The signal also wakes a thread through a
    socket; if the block is still running after `PATIENCE` seconds, the thread ends the process. Files are written
    atomically and runs continue from their last checkpoint, so nothing is lost.

    Args:
        message: called for the text to print.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    import socket  # here, because the command shows its first status before it

    ended = threading.Event()
    receiver, sender = socket.socketpair()
    sender.setblocking(False)

    def watch() -> None:
        while data := receiver.recv(1):
            if data[0] == signal.SIGINT and not ended.wait(PATIENCE):
                print(message(), file=sys.stderr, flush=True)
                os._exit(EXIT_CODE)

    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        sender.close()
        thread.join()
        receiver.close()
