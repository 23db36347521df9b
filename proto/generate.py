"""Generates the stubs of `proto/dragoman` into `clients/`, or checks that the committed ones are current.

    python proto/generate.py            writes clients/dragoman/v1/*_pb2*.py and .pyi
    python proto/generate.py --check    exits with 1 and names the files that differ

The versions of grpcio-tools and mypy-protobuf are pinned in pyproject.toml, so the output is the same
everywhere. They also set the lowest versions of protobuf and grpcio that the stubs import with.
"""

import argparse
import sys
import sysconfig
import tempfile
from pathlib import Path

from grpc_tools import protoc

PROTO = Path(__file__).resolve().parent
CLIENTS = PROTO.parent / "clients"


def main() -> int:
    """Writes or checks, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="compare with the committed stubs, write nothing"
    )
    if not parser.parse_args().check:
        generate(CLIENTS)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        drifted = compare(Path(folder), CLIENTS)
    for name in drifted:
        print(f"clients/{name} is not what proto/ generates; run `make proto` and commit", file=sys.stderr)
    return 1 if drifted else 0


def generate(out: Path) -> None:
    """Runs protoc over `proto/dragoman`. Raises RuntimeError where it fails, which protoc explains."""
    arguments = [
        "protoc",
        f"-I{PROTO}",
        f"-I{Path(protoc.__file__).parent / '_proto'}",
        f"--plugin=protoc-gen-mypy_grpc={Path(sysconfig.get_path('scripts')) / 'protoc-gen-mypy_grpc'}",
        f"--python_out={out}",
        f"--pyi_out={out}",
        f"--grpc_python_out={out}",
        f"--mypy_grpc_out=quiet:{out}",
        *(str(path) for path in sorted((PROTO / "dragoman").rglob("*.proto"))),
    ]
    if protoc.main(arguments) != 0:
        raise RuntimeError("protoc failed")


def compare(fresh: Path, committed: Path) -> list[str]:
    """Names, relative to both folders, of stubs that differ, are missing or have no source any more."""
    names = {
        path.relative_to(root).as_posix()
        for root in (fresh, committed)
        for path in root.rglob("*_pb2*")
        if path.suffix in (".py", ".pyi")
    }
    return sorted(name for name in names if read(fresh / name) != read(committed / name))


def read(path: Path) -> bytes | None:
    """The file's content, or None where there is no such file."""
    return path.read_bytes() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
