"""The `dragoman` command, which is `python -m dragoman` too: what has to come before all that it loads."""

import signal


def main() -> None:
    """Runs the command."""
    # A server reads its files again at SIGHUP, which may come while it is still being loaded and would end
    # it. Blocked it waits, until the group of commands or the server takes it.
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    from dragoman.cli import main as command

    command(prog_name="dragoman")


if __name__ == "__main__":
    main()
