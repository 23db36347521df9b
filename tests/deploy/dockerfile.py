"""Reads a Dockerfile into its instructions, as far as these tests need it."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One instruction."""

    name: str
    """In upper case."""
    text: str
    """What follows the name, lines joined."""

    @property
    def words(self) -> list[str]:
        """The text, split as a shell does."""
        return shlex.split(self.text)

    @property
    def flags(self) -> list[str]:
        """The words that begin with --, such as --from=build."""
        return [word for word in self.words if word.startswith("--")]

    @property
    def arguments(self) -> list[str]:
        """The words that are not flags."""
        return [word for word in self.words if not word.startswith("--")]

    @property
    def exec_form(self) -> list[str]:
        """The command of ENTRYPOINT, CMD or HEALTHCHECK. Raises ValueError for one that a shell would run."""
        return json.loads(self.text[self.text.find("[") :])


def read_dockerfile(path: Path) -> list[Instruction]:
    """All instructions, without comments."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [
        Instruction(name=name.upper(), text=text.strip())
        for name, _, text in (line.strip().partition(" ") for line in joined.splitlines())
    ]


def final_stage(instructions: list[Instruction]) -> list[Instruction]:
    """The instructions of the stage that becomes the image."""
    start = max(index for index, instruction in enumerate(instructions) if instruction.name == "FROM")
    return instructions[start:]


def is_ignored(path: str, dockerignore: str) -> bool:
    """Whether a .dockerignore leaves a path out; the last pattern that matches it or a folder of it decides.

    Knows patterns without wildcards, and "*".
    """
    ignored = False
    for pattern in dockerignore.split():
        bare = pattern.removeprefix("!")
        if bare == "*" or path == bare or path.startswith(f"{bare}/"):
            ignored = not pattern.startswith("!")
    return ignored
