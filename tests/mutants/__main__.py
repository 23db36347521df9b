"""`make mutants`: changes lines of the sources one by one and names the changes that no test notices.

The mutants of known.toml are always tried; the others are drawn, as many of each area. First the files of
tests are run that are named after or import what is changed. What these let through is tried with all that
run the changed line, as one run with coverage has recorded them (again once they or what they run change).
All happens in a copy of the tree: whatever ends this program, the tree is as it was. What was found out is
kept in .mutants/, so that the next call goes on where this one stopped.
"""

import ast
import contextlib
import hashlib
import json
import os
import re
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
from itertools import chain, islice, zip_longest
from pathlib import Path

import click
from tests.mutants.mutation import Mutation, mutations

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".mutants"
TREE = CACHE / "tree"
NUMBA_CACHE = CACHE / "numba"
KNOWN = Path(__file__).with_name("known.toml")
PACKAGES = ("clients", "bundle", "export", "server", "training")
AREAS = {
    "text": (["server/dragoman_server/text"], ["tests/server/text"]),
    "engine": (["server/dragoman_server/engine"], ["tests/engine"]),
    "gate": (["export/dragoman_export/parity"], ["tests/export/parity", "tests/export/shortlist"]),
    "jobs": (["clients/dragoman/jobs", "clients/dragoman_files"], ["tests/clients/jobs", "tests/files"]),
    "aligners": (
        ["training/dragoman_training/alignment", "training/dragoman_training/classics"],
        ["tests/training/alignment", "tests/training/classics"],
    ),
}
"""Folders of sources, and of the tests that are to hold them."""
MAX_SURVIVING_SHARE = 0.1
MAX_SECONDS = 600
"""For tests that were not timed: a mutant may never end."""
PYTEST_OPTIONS = ("-x", "-n", "0", "-p", "no:cacheprovider")
NOTHING_FAILED = (0, 5)
"""pytest's exit codes where all passed, and where all are left out as they take long."""
MAX_BYTES = 6 << 30
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
    """Which files of an area's tests run which lines of it."""

    def __init__(self, area: str) -> None:
        """Records what is not known of files of tests as they are and of the sources that they run."""
        folders, tests = AREAS[area]
        self._path = CACHE / f"{area}.json"
        self._records = json.loads(self._path.read_text()) if self._path.exists() else {}
        files = list(filter(is_tests, _files(tests)))
        self._records = {
            name: record
            for name, record in self._records.items()
            if name in files and record["digest"] == self._digest(name)
        }
        if missing := [name for name in files if name not in self._records]:
            print(f"{area}: recording which lines {len(missing)} files of tests run", flush=True)
            self._record(folders, missing)

    def tests_of(self, file: str, line: int) -> list[str]:
        """The tests that run a line, the quickest first; or else any line of its file, or else all.

        No line is seen to be run where it is compiled, or run at import.
        """
        every = sorted(self._records, key=lambda name: self._records[name]["seconds"])
        of_file = [name for name in every if file in self._records[name]["lines"]]
        return [name for name in of_file if line in self._records[name]["lines"][file]] or of_file or every

    def seconds(self, tests: Iterable[str]) -> float:
        """What tests took, of the processor."""
        return sum(self._records[name]["seconds"] for name in tests)

    def digest(self, tests: Iterable[str]) -> str:
        """Another one once one of these tests, or what it runs, is another."""
        return digest_of("".join(self._records[name]["digest"] for name in tests))

    def _digest(self, test: str) -> str:
        paths = [TREE / name for name in sorted([test, *self._records[test]["lines"]])]
        return digest_of("".join(path.read_text() for path in paths if path.exists()))

    def _record(self, folders: Sequence[str], tests: Sequence[str]) -> None:
        file = CACHE / "record"
        code, output = run("tests.mutants.recording", [str(file), ",".join(folders), *tests], 7200)
        if code != 0:
            raise click.ClickException(f"without any change tests fail:\n{output[-3000:]}")
        self._records |= json.loads(file.read_text())
        for name in tests:
            # One whose tests are all long runs nothing.
            record = self._records.setdefault(name, {"seconds": 0.0, "lines": {}})
            record["digest"] = self._digest(name)
        self._path.write_text(json.dumps(self._records))


def run(
    module: str, arguments: Sequence[str], seconds: float, numba_cache: Path = NUMBA_CACHE
) -> tuple[int, str]:
    """A module's exit code in the copy of the tree and what it wrote; 124 where it took too long."""
    paths = os.pathsep.join(str(TREE / package) for package in PACKAGES)
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=TREE, env={**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(numba_cache)},
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
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


def killer(mutant: Mutant, tests: Sequence[str], seconds: float) -> str | None:
    """The first of the tests that fails with a mutant, or its file, or none."""
    path = TREE / mutant.file
    source, times = path.read_text(), path.stat()
    with tempfile.TemporaryDirectory() as folder:
        numba_cache = NUMBA_CACHE
        if "@njit" in source:
            numba_cache = Path(folder) / "numba"
            shutil.copytree(NUMBA_CACHE, numba_cache)
            forget_compiled(numba_cache, mutant.file)
        try:
            path.write_text(mutant.source)
            code, output = run("pytest", [*PYTEST_OPTIONS, *tests], seconds, numba_cache)
        finally:
            path.write_text(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if code in NOTHING_FAILED:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (tests/[^[\n]*?(?:\[.*?\])?)(?: - .*)?$", output, re.MULTILINE)
    return failed[1] if failed else tests[0]


class Results:
    """What was found out, now and before."""

    def __init__(self) -> None:
        self._path = CACHE / "results.jsonl"
        self._path.touch()
        entries = map(json.loads, self._path.read_text().splitlines())
        # Tests of later may notice what those of then did not.
        self._done = {(each["file"], each["change"], each["survives_digest"]) for each in entries}
        self._coverage: dict[str, Coverage] = {}
        self._killers: set[str] = set()

    def survives_direct(self, mutant: Mutant) -> bool:
        """Whether the tests that are named after the changed module, or import it, let it through."""
        folders, stem = AREAS[mutant.area][1], Path(mutant.file).stem
        near = [
            *(name for name in _files(folders) if stem in Path(name).stem),
            *importing(mutant.file, folders),
        ]
        tests = [name for name in dict.fromkeys(near) if is_tests(name)]
        content = "".join((TREE / name).read_text() for name in tests)
        return not tests or self._survives(mutant, tests, digest_of(content), MAX_SECONDS)

    def survives_all(self, mutant: Mutant) -> bool:
        """Whether all tests of the area that run the line do."""
        own = self._coverage.get(mutant.area) or Coverage(mutant.area)
        self._coverage[mutant.area] = own
        tests = own.tests_of(mutant.file, mutant.line)
        return self._survives(mutant, tests, own.digest(tests), 120 + 10 * own.seconds(tests))

    def _survives(self, mutant: Mutant, tests: Sequence[str], digest: str, seconds: float) -> bool:
        if (mutant.file, mutant.change, None) in self._done:
            return False
        if (mutant.file, mutant.change, digest) in self._done:
            return True
        began, found = time.monotonic(), killer(mutant, tests, seconds)
        entry = {"file": mutant.file, "change": mutant.change, "survives_digest": None if found else digest}
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        told = f"killed by {found}" if found else f"survives {len(tests)} files of tests"
        print(f"{mutant}\n  {told} ({time.monotonic() - began:.0f} s)", flush=True)
        if found:
            self._killers.add(found)
        return not found

    def check_killers(self) -> None:
        """Raises ClickException where a test that has failed with a mutant fails without, too."""
        code, output = run("pytest", [*PYTEST_OPTIONS, *self._killers], 7200) if self._killers else (0, "")
        if code not in NOTHING_FAILED:
            raise click.ClickException(f"without any change tests fail:\n{output[-3000:]}")


def importing(file: str, folders: Sequence[str]) -> list[str]:
    """The files that import a module."""
    module = file.removesuffix(".py").partition("/")[2].replace("/", ".")
    return [name for name in _files(folders) if f"{module} import" in (TREE / name).read_text()]


def forget_compiled(numba_cache: Path, file: str) -> None:
    """Removes what may hold a file's compiled code: numba sees a change of the file itself alone."""
    changed = [file]
    for name in changed:
        changed += [other for other in importing(name, AREAS["aligners"][0]) if other not in changed]
    for name in changed:
        for path in numba_cache.rglob(f"{Path(name).stem}.*"):
            path.unlink()


def copy_tree() -> None:
    """Makes the copy what the tree is: all files that git knows or would."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = [name for name in listed.splitlines() if (ROOT / name).is_file()]
    for path in TREE.rglob("*"):
        # What tests have made, and what is compiled, stays.
        is_made = not {".pytest_cache", "__pycache__"}.isdisjoint(path.parts)
        if path.is_file() and not is_made and str(path.relative_to(TREE)) not in names:
            path.unlink()
    for name in names:
        (TREE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, TREE / name)


def digest_of(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def is_tests(name: str) -> bool:
    """Of a file: whether tests are found in it."""
    return Path(name).name.startswith("test_")


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
    NUMBA_CACHE.mkdir(parents=True, exist_ok=True)
    copy_tree()
    areas = areas or list(AREAS)
    known = [one for one in known_mutants(TREE) if one.area in areas]
    drawn = drawn_mutants(areas, seed, known)
    mutants = list(islice(chain((one for one in known if not one.equivalent), drawn), number))
    results = Results()
    let_through = [mutant for mutant in mutants if results.survives_direct(mutant)]
    survivors = [mutant for mutant in let_through if results.survives_all(mutant)]
    results.check_killers()
    for mutant in known:
        if mutant.equivalent:
            print(f"equivalent: {mutant}: {mutant.equivalent}")
    print(f"{len(survivors)} of {len(mutants)} survive", *survivors, sep="\n  ")
    sys.exit(len(survivors) > MAX_SURVIVING_SHARE * len(mutants) or any(one in known for one in survivors))


if __name__ == "__main__":
    main()
