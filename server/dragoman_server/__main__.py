"""`python -m dragoman_server` is `dragoman serve`."""

import contextlib
import os
import signal
import sys


def main() -> None:
    # SIGHUP, which would end the process while it is being loaded, waits until the server takes it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    from dragoman_server.cli import serve

    try:
        serve(prog_name="python -m dragoman_server")
    except SystemExit as end:
        for stream in (sys.stdout, sys.stderr):
            # Nobody may read it any more, and None is one that was closed from the start.
            with contextlib.suppress(OSError, AttributeError):
                stream.flush()
        # Threads that nobody waits for would hold up the interpreter's own end.
        os._exit(end.code if isinstance(end.code, int) else 0)


if __name__ == "__main__":
    main()
