"""`python -m dragoman_server` is `dragoman serve`."""

import signal


def main() -> None:
    """Runs the server."""
    # SIGHUP, which would end the process while it is being loaded, waits until the server takes it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    from dragoman_server.cli import serve

    serve(prog_name="python -m dragoman_server")


if __name__ == "__main__":
    main()
