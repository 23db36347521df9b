"""Models that a server shall have: `dragoman get` fetches them, in a process of its own, at its start."""

import asyncio
import logging
import sys
from pathlib import Path

logger = logging.getLogger(__name__)


class GettingError(RuntimeError):
    """A model could not be fetched."""


async def get_models(models: str, folder: Path) -> None:
    """Fetches those, with commas between, that the folder has nothing for. Raises GettingError.

    What the command says goes into the log line by line. Cancelled, it ends the process.
    """
    names = [name.strip() for name in models.split(",") if name.strip()]
    command = [sys.executable, "-m", "dragoman", "get", "--yes", "--missing", "--models", str(folder), *names]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    said = ""
    try:
        async for line in process.stdout:
            said = line.decode(errors="replace").strip() or said
            logger.info("getting models", extra={"said": said})
        code = await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
    if code != 0:
        raise GettingError(f"`dragoman get {' '.join(names)}` failed: {said}")
