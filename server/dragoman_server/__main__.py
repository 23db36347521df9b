"""`python -m dragoman_server` is `dragoman serve`."""

from dragoman_server.cli import serve

if __name__ == "__main__":
    serve(prog_name="python -m dragoman_server")
