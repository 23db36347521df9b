"""The `dragoman` command, which is `python -m dragoman` too: what has to come before all that it loads."""

import contextlib
import os
import signal
import sys


def main() -> None:
    # A server reads its files again at SIGHUP, which may come while it is still being loaded and would end
    # it. Blocked it waits, until the group of commands or the server takes it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    from dragoman.cli import main as command

    try:
        command(prog_name="dragoman")
    except SystemExit as end:
        if not command.abandons_threads:
            raise
        for stream in (sys.stdout, sys.stderr):
            # Nobody may read it any more, and None is one that was closed from the start.
            with contextlib.suppress(OSError, AttributeError):
                stream.flush()
        # Threads that nobody waits for would hold up the interpreter's own end.
        os._exit(end.code if isinstance(end.code, int) else 0)


if __name__ == "__main__":
    main()
