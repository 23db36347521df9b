"""Copies of a bundle, whole ones under another version and damaged ones."""

import json
import random
import shutil
from pathlib import Path

KINDS = ("flipped", "cut", "missing", "manifest cut", "empty")


def copy_bundle(bundle: Path, version: int) -> Path:
    """A whole copy as another version; it stands under its name only when it is complete."""
    folder = bundle.parent / str(version)
    hidden = bundle.parent / f".{version}"
    shutil.copytree(bundle.resolve(), hidden)
    manifest = json.loads((hidden / "manifest.json").read_text())
    manifest["version"] = str(version)
    (hidden / "manifest.json").write_text(json.dumps(manifest))
    hidden.rename(folder)
    return folder


def damage(folder: Path, kind: str, generator: random.Random) -> str:
    """Damages one file that the manifest names, or the manifest; says which."""
    manifest = folder / "manifest.json"
    if kind == "manifest cut":
        content = manifest.read_bytes()
        manifest.write_bytes(content[: generator.randrange(1, len(content) - 1)])
        return manifest.name
    name: str = generator.choice(sorted(json.loads(manifest.read_text())["files"]))
    path = folder / name
    content = path.read_bytes()
    if kind == "missing":
        path.unlink()
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "cut":
        path.write_bytes(content[: generator.randrange(len(content))])
    else:
        at = generator.randrange(len(content))
        path.write_bytes(
            content[:at] + bytes([content[at] ^ 1 << generator.randrange(8)]) + content[at + 1 :]
        )
    return name
