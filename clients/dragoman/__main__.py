"""`python -m dragoman` is the `dragoman` command."""

from dragoman.cli import main

if __name__ == "__main__":
    main(prog_name="dragoman")
