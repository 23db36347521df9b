"""`make mutants`: changes lines of the sources one by one and names the changes that no test notices.

The mutants of known.toml are always tried; the others are drawn, as many of each area. Only the tests that
run the changed line are run, as one run with coverage has recorded them (again once sources or tests of an
area change). All happens in a copy of the tree: whatever ends this program, the tree is as it was. What was
found out is kept in .mutants/, so that the next call goes on where this one stopped.
"""

import ast
import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

import click
from tests.mutants.mutation import Mutation, mutations

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".mutants"
TREE = CACHE / "tree"
KNOWN = Path(__file__).with_name("known.toml")
PACKAGES = ("clients", "bundle", "export", "server", "training")
AREAS = {
    "text": (["server/dragoman_server/text"], ["tests/server/text"]),
    "engine": (["server/dragoman_server/engine"], ["tests/engine"]),
    "gate": (["export/dragoman_export/parity"], ["tests/export/parity"]),
    "jobs": (["clients/dragoman/jobs", "clients/dragoman_files"], ["tests/clients/jobs", "tests/files"]),
    "aligners": (
        ["training/dragoman_training/alignment", "training/dragoman_training/classics"],
        ["tests/training/alignment", "tests/training/classics"],
    ),
}
"""Folders of sources, and of the tests that are to hold them."""
MAX_SURVIVING_SHARE = 0.1
MAX_BYTES = 12 << 30
"""Memory: a mutant may ask for more and more."""


@dataclass(frozen=True)
class Mutant:
    """A changed source."""

    area: str
    file: str
    line: int
    change: str
    """The line before and after."""
    source: str
    equivalent: str | None = None
    """Why no test can notice it, of those that none can."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}  {self.change}"


def known_mutants(root: Path) -> list[Mutant]:
    """Those of known.toml. Raises ValueError for one whose text is not in its file once."""
    found = []
    for entry in tomllib.loads(KNOWN.read_text())["mutant"]:
        path, line = entry["file"], 0
        source = (root / path).read_text()
        for old, new in entry["changes"].items():
            if source.count(old) != 1:
                raise ValueError(f"{KNOWN.name}: {old!r} is in {path} {source.count(old)} times, not once")
            line = line or source[: source.index(old)].count("\n") + 1
            source = source.replace(old, new)
        change = "; ".join(f"{old.strip()} -> {new.strip()}" for old, new in entry["changes"].items())
        area = next(area for area, (folders, _) in AREAS.items() if path.startswith(tuple(folders)))
        found.append(Mutant(area, path, line, change, source, entry.get("equivalent")))
    return found


def drawn_mutants(areas: Sequence[str], seed: int, known: Sequence[Mutant]) -> Iterator[Mutant]:
    """Others, each of another line, in turns of each area."""
    taken = {(one.file, ast.dump(ast.parse(one.source))) for one in known}
    lines = {(one.file, one.line) for one in known if not one.equivalent}
    for turn in zip_longest(*(_ranked_mutations(area, seed) for area in areas)):
        for area, drawn in zip(areas, turn, strict=True):
            if drawn is None:
                continue
            path, mutation = drawn
            source = (TREE / path).read_text()
            changed = mutation.apply(source)
            if (path, mutation.line) not in lines and (path, ast.dump(ast.parse(changed))) not in taken:
                lines.add((path, mutation.line))
                before, after = (text.splitlines()[mutation.line - 1].strip() for text in (source, changed))
                yield Mutant(area, path, mutation.line, f"{before} -> {after}", changed)


def _ranked_mutations(area: str, seed: int) -> list[tuple[str, Mutation]]:
    """All of an area; which is drawn first does not depend on the others."""
    every = []
    for path in _files(AREAS[area][0]):
        source = (TREE / path).read_text()
        lines = source.splitlines()
        for own in mutations(source):
            drawn = f"{seed} {path} {lines[own.line - 1]} {own.replacement}".encode()
            every.append((hashlib.sha256(drawn).digest(), path, own))
    return [(path, own) for _, path, own in sorted(every, key=lambda ranked: ranked[0])]


class Coverage:
    """Which tests of an area run which lines."""

    def __init__(self, area: str) -> None:
        """Records it where what was recorded is of other sources or tests."""
        self._folders, self._tests = AREAS[area]
        digest = hashlib.sha256()
        for name in _files([*self._folders, *self._tests]):
            digest.update(name.encode() + b"\0" + (TREE / name).read_bytes())
        self.digest, path = digest.hexdigest(), CACHE / f"{area}.json"
        recorded = json.loads(path.read_text()) if path.exists() else {}
        if recorded.get("digest") != self.digest:
            print(f"{area}: recording which tests run which lines", flush=True)
            recorded = self._record() | {"digest": self.digest}
            path.write_text(json.dumps(recorded))
        self.seconds: float = recorded["seconds"]
        self._contexts: list[str] = recorded["contexts"]
        """Tests, and whether it is they that run a line or a fixture for them."""
        self._lines: dict[str, dict[str, list[int]]] = recorded["lines"]

    def recorded(self, file: str, line: int) -> list[str]:
        """The tests that were seen to run a line. None is seen where it is compiled, or run at import."""
        return self._tests_in(self._lines.get(file, {}).get(str(line), []))

    def tests_of(self, file: str, line: int) -> list[str]:
        """The tests that run a line, or else any line of its file, or else all of the area."""
        runs = chain.from_iterable(self._lines.get(file, {}).values())
        return self.recorded(file, line) or self._tests_in(dict.fromkeys(runs)) or self._tests

    def _tests_in(self, contexts: Iterable[int]) -> list[str]:
        runs = [self._contexts[place].rpartition("|") for place in contexts]
        # What a fixture runs is run for all tests of the file.
        files = dict.fromkeys(test.partition("::")[0] for test, _, when in runs if when != "run")
        return [*dict.fromkeys(test for test, _, _ in runs if test.partition("::")[0] not in files), *files]

    def _record(self) -> dict[str, object]:
        from coverage import CoverageData

        began, file = time.monotonic(), CACHE / "coverage"
        file.unlink(missing_ok=True)
        options = ["--cov-context=test", "--cov-report=", *(f"--cov={TREE / each}" for each in self._folders)]
        code, output = run_tests([*self._tests, *options], 7200, COVERAGE_FILE=str(file))
        if code != 0:
            raise click.ClickException(f"without any change tests fail:\n{output[-3000:]}")
        data = CoverageData(file)
        data.read()
        contexts = sorted(data.measured_contexts() - {""})
        number = {context: place for place, context in enumerate(contexts)}
        lines = {
            str(Path(name).relative_to(TREE)): {
                line: [number[context] for context in sorted(found) if context]
                for line, found in data.contexts_by_lineno(name).items()
            }
            for name in data.measured_files()
        }
        return {"seconds": time.monotonic() - began, "contexts": contexts, "lines": lines}


def run_tests(arguments: Sequence[str], seconds: float, **environment: str) -> tuple[int, str]:
    """pytest's exit code and what it wrote; 124 where it took too long."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(TREE / package) for package in PACKAGES),
        "NUMBA_CACHE_DIR": str(CACHE / "numba"),
        **environment,
    }
    with tempfile.TemporaryFile("w+") as output, tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        # One argument a line, of which there may be thousands.
        listed.write("\n".join(arguments))
        listed.flush()
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider", f"@{listed.name}"],
            cwd=TREE, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES)),
        )  # fmt: skip
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            # With it the servers that it has started.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return code, output.read()


def is_killed(mutant: Mutant, coverage: Coverage) -> bool:
    """Whether a test that may run its line fails with it."""
    path = TREE / mutant.file
    source, times = path.read_text(), path.stat()
    # Compiled code that is kept holds that of other files, and does not go when these change.
    with tempfile.TemporaryDirectory() as folder:
        fresh = {} if coverage.recorded(mutant.file, mutant.line) else {"NUMBA_CACHE_DIR": folder}
        try:
            path.write_text(mutant.source)
            code, output = run_tests(
                coverage.tests_of(mutant.file, mutant.line), 60 + 3 * coverage.seconds, **fresh
            )
        finally:
            path.write_text(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if code == 4 and "ERROR collecting" not in output and "conftest" not in output:
        raise click.ClickException(f"the tests recorded can't be run:\n{output[-3000:]}")
    return code != 0


def copy_tree() -> None:
    """Makes the copy what the tree is: all files that git knows or would."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    shutil.rmtree(TREE, ignore_errors=True)
    for name in filter(lambda name: (ROOT / name).is_file(), listed.splitlines()):
        (TREE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, TREE / name)


def _files(folders: Sequence[str]) -> list[str]:
    return sorted(str(path.relative_to(TREE)) for folder in folders for path in (TREE / folder).rglob("*.py"))


@click.command()
@click.option("--number", default=100, show_default=True, help="Mutants, those of known.toml among them.")
@click.option("--seed", default=1, show_default=True, help="Of what is drawn.")
@click.option("--area", "areas", type=click.Choice(list(AREAS)), multiple=True, help="Of these alone.")
def main(number: int, seed: int, areas: Sequence[str]) -> None:
    """Change lines one by one and name the changes that no test notices."""
    # Ended as by Ctrl-C, so that the tests end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    CACHE.mkdir(exist_ok=True)
    copy_tree()
    areas = areas or list(AREAS)
    known = [one for one in known_mutants(TREE) if one.area in areas]
    results = CACHE / "results.jsonl"
    results.touch()
    # Tests of later may notice what those of then did not.
    done = {
        (each["file"], each["change"], each["survives_digest"])
        for each in map(json.loads, results.read_text().splitlines())
    }
    coverage: dict[str, Coverage] = {}
    num_tried = 0
    survivors = []
    for mutant in chain((one for one in known if not one.equivalent), drawn_mutants(areas, seed, known)):
        if num_tried == number:
            break
        if mutant.area not in coverage:
            coverage[mutant.area] = Coverage(mutant.area)
        own, began = coverage[mutant.area], time.monotonic()
        num_tried += 1
        if (mutant.file, mutant.change, None) in done:
            continue
        if (mutant.file, mutant.change, own.digest) not in done:
            survives = None if is_killed(mutant, own) else own.digest
            with results.open("a") as file:
                entry = {"file": mutant.file, "change": mutant.change, "survives_digest": survives}
                file.write(json.dumps(entry) + "\n")
            told = f"{'SURVIVES' if survives else 'killed'} after {time.monotonic() - began:.0f} s"
            print(f"{num_tried}/{number} {told}: {mutant}", flush=True)
            if not survives:
                continue
        survivors.append(mutant)
    for mutant in known:
        if mutant.equivalent:
            print(f"equivalent: {mutant}: {mutant.equivalent}")
    print(f"{len(survivors)} of {num_tried} survive", *survivors, sep="\n  ")
    sys.exit(len(survivors) > MAX_SURVIVING_SHARE * num_tried or any(one in known for one in survivors))


if __name__ == "__main__":
    main()
