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
from collections import defaultdict
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import click
from tests.mutants.mutation import Mutation, mutations

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".mutants"
TREE = CACHE / "tree"
KNOWN = Path(__file__).with_name("known.toml")
PACKAGES = ("clients", "bundle", "export", "server", "training")
AREAS = {
    "text": (("server/dragoman_server/text",), ("tests/server/text",)),
    "engine": (("server/dragoman_server/engine",), ("tests/engine",)),
    "gate": (("export/dragoman_export/parity",), ("tests/export/parity",)),
    "jobs": (("clients/dragoman/jobs",), ("tests/clients/jobs", "tests/clients/formats")),
    "aligners": (
        ("training/dragoman_training/alignment", "training/dragoman_training/smt"),
        ("tests/training/alignment", "tests/training/smt"),
    ),
}
MAX_SURVIVING_SHARE = 0.1
MEMORY_BYTES = 12 << 30
"""A mutant may ask for more and more."""


@dataclass(frozen=True)
class Mutant:
    """A changed source."""

    area: str
    file: str
    line: int
    name: str
    """The line before and after."""
    source: str
    equivalent: str | None = None
    """Why no test can notice it, of those that none can."""


def known_mutants(root: Path) -> list[Mutant]:
    """Those of known.toml. Raises ValueError for one whose text is not in its file once."""
    found = []
    for entry in tomllib.loads(KNOWN.read_text())["mutant"]:
        path, changed, line = entry["file"], (root / entry["file"]).read_text(), 0
        for old, new in entry["changes"].items():
            if changed.count(old) != 1:
                raise ValueError(f"{KNOWN.name}: {old!r} is in {path} {changed.count(old)} times, not once")
            line = line or changed[: changed.index(old)].count("\n") + 1
            changed = changed.replace(old, new)
        name = "; ".join(f"{old.strip()} -> {new.strip()}" for old, new in entry["changes"].items())
        found.append(Mutant(_area_of(path), path, line, name, changed, entry.get("equivalent")))
    return found


def drawn_mutants(number: int, seed: int, known: list[Mutant]) -> list[Mutant]:
    """So many others, of as many lines, in turns of each area."""
    taken = {(one.file, ast.dump(ast.parse(one.source))) for one in known}
    lines = {(one.file, one.line) for one in known if not one.equivalent}
    found: list[Mutant] = []
    for turn in zip_longest(*(_ranked_mutations(area, seed) for area in AREAS)):
        for area, drawn in zip(AREAS, turn, strict=True):
            if drawn is None or len(found) == number:
                continue
            path, mutation = drawn
            source = (TREE / path).read_text()
            changed = mutation.apply(source)
            if (path, mutation.line) not in lines and (path, ast.dump(ast.parse(changed))) not in taken:
                lines.add((path, mutation.line))
                before, after = (text.splitlines()[mutation.line - 1].strip() for text in (source, changed))
                found.append(Mutant(area, path, mutation.line, f"{before} -> {after}", changed))
        if len(found) == number:
            break
    return found


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
        """Records it where nothing recorded holds any more."""
        self._folders, self._tests = AREAS[area]
        self.digest = _digest((*self._folders, *self._tests))
        path = CACHE / f"{area}.json"
        recorded = json.loads(path.read_text()) if path.exists() else {}
        if recorded.get("digest") != self.digest:
            recorded = {"digest": self.digest, **self._record(area)}
            path.write_text(json.dumps(recorded))
        self.seconds: float = recorded["seconds"]
        self._contexts: list[str] = recorded["contexts"]
        """Tests and whether it is they that run a line, or a fixture for them."""
        self._lines: dict[str, dict[str, list[int]]] = recorded["lines"]
        self._trees = {path: ast.parse((TREE / path).read_text()) for path in _files(self._folders)}
        self._users: dict[str, set[tuple[str, int]]] = defaultdict(set)
        """The lines that a name stands in."""
        for path, tree in self._trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.Name | ast.Attribute):
                    self._users[node.id if isinstance(node, ast.Name) else node.attr].add((path, node.lineno))

    def is_recorded(self, file: str, line: int) -> bool:
        """Whether a test was seen to run the line, which is therefore not compiled."""
        return bool(self._lines.get(file, {}).get(str(line)))

    def tests_of(self, file: str, line: int) -> list[str]:
        """Those that run a line; what is compiled and constants are run by those that use them.

        Where none is known, as of what runs in other processes alone, all of the area.
        """
        return self._tests_of(file, line, set()) or list(self._tests)

    def _tests_of(self, file: str, line: int, asked: set[tuple[str, int]]) -> list[str]:
        if (file, line) in asked:
            return []
        asked.add((file, line))
        if runs := [
            self._contexts[place].rpartition("|") for place in self._lines.get(file, {}).get(str(line), [])
        ]:
            # What a fixture runs is run for all tests of the file.
            files = {test.partition("::")[0] for test, _, when in runs if when != "run"}
            direct = [test for test, _, _ in runs if test.partition("::")[0] not in files]
            return list(dict.fromkeys([*direct, *sorted(files)]))
        users = self._users[_definition_at(self._trees[file], line) or ""]
        return list(dict.fromkeys(test for user in sorted(users) for test in self._tests_of(*user, asked)))

    def _record(self, area: str) -> dict[str, object]:
        from coverage import CoverageData

        print(f"{area}: recording which tests run which lines", flush=True)
        data_file, began = CACHE / "coverage", time.monotonic()
        data_file.unlink(missing_ok=True)
        options = [f"--cov={TREE / folder}" for folder in self._folders]
        code, output = run_tests(
            [*self._tests, *options, "--cov-context=test", "--cov-report="], 3600, data_file
        )
        if code != 0:
            raise click.ClickException(f"without any change the tests of {area} fail:\n{output[-3000:]}")
        data = CoverageData(data_file)
        data.read()
        contexts = sorted(data.measured_contexts() - {""})
        number = {context: place for place, context in enumerate(contexts)}
        lines = {
            str(Path(file).relative_to(TREE)): {
                line: [number[context] for context in sorted(found) if context]
                for line, found in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        return {"seconds": time.monotonic() - began, "contexts": contexts, "lines": lines}


def run_tests(
    arguments: list[str], seconds: float, coverage_file: Path | None = None, numba_cache: str = ""
) -> tuple[int, str]:
    """pytest's exit code and what it wrote; 124 where it took too long."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(TREE / package) for package in PACKAGES),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COVERAGE_FILE": str(coverage_file or os.devnull),
        **({"NUMBA_CACHE_DIR": numba_cache} if numba_cache else {}),
    }
    with tempfile.TemporaryFile("w+") as output, tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        # One argument a line, of which there may be thousands.
        listed.write("\n".join(arguments))
        listed.flush()
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider", f"@{listed.name}"],
            cwd=TREE, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES)),
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
    """Whether a test fails with it."""
    path = TREE / mutant.file
    source, times = path.read_text(), path.stat()
    tests = coverage.tests_of(mutant.file, mutant.line)
    try:
        path.write_text(mutant.source)
        # Compiled code that is kept holds that of other files, and does not go when these change.
        with tempfile.TemporaryDirectory() as folder:
            numba_cache = "" if coverage.is_recorded(mutant.file, mutant.line) else folder
            code, output = run_tests(tests, 60 + 3 * coverage.seconds, numba_cache=numba_cache)
    finally:
        path.write_text(source)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if code == 4 and "ERROR collecting" not in output and "conftest" not in output:
        raise click.ClickException(f"the tests recorded can't be run:\n{output[-3000:]}")
    return code != 0


def copy_tree() -> None:
    """Makes the copy what the tree is: all files that git knows or would."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    wanted = {line for line in listed.splitlines() if (ROOT / line).is_file()}
    for path in list(TREE.rglob("*")):
        relative = path.relative_to(TREE)
        if path.is_file() and "__pycache__" not in relative.parts and str(relative) not in wanted:
            path.unlink()
    for name in wanted:
        source, copy = ROOT / name, TREE / name
        if not copy.exists() or copy.stat().st_mtime_ns != source.stat().st_mtime_ns:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)


def _files(folders: tuple[str, ...]) -> list[str]:
    return sorted(str(path.relative_to(TREE)) for folder in folders for path in (TREE / folder).rglob("*.py"))


def _area_of(file: str) -> str:
    return next(area for area, (folders, _) in AREAS.items() if file.startswith(folders))


def _digest(folders: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for path in _files(folders):
        digest.update(path.encode() + b"\0" + (TREE / path).read_bytes())
    return digest.hexdigest()


def _definition_at(tree: ast.Module, line: int) -> str | None:
    """The name of the function, or of the constant of the module or of a class, that a line is in."""
    body = tree.body
    while node := next((each for each in body if each.lineno <= line <= (each.end_lineno or 0)), None):
        match node:
            case ast.ClassDef(body=body):
                continue
            case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                return name
            case ast.AnnAssign(target=ast.Name(id=name)):
                return name
        break
    return None


def _describe(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.line}  {mutant.name}"


@click.command()
@click.option(
    "--number", default=100, show_default=True, help="Mutants in all, those of known.toml among them."
)
@click.option("--seed", default=1, show_default=True, help="Of what is drawn.")
def main(number: int, seed: int) -> None:
    """Change lines one by one and name the changes that no test notices."""
    # Ended like by Ctrl-C, so that the tests end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    CACHE.mkdir(exist_ok=True)
    copy_tree()
    known = known_mutants(TREE)
    tried = [one for one in known if not one.equivalent]
    tried += drawn_mutants(number - len(tried), seed, known)
    results = CACHE / "results.jsonl"
    done = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    # A test that fails goes on to; one more may notice what none did.
    killed = {(each["file"], each["name"]) for each in done if each["killed"]}
    survived = {(each["file"], each["name"], each["digest"]) for each in done if not each["killed"]}
    coverage: dict[str, Coverage] = {}
    survivors = []
    for place, mutant in enumerate(tried, 1):
        if (mutant.file, mutant.name) in killed:
            continue
        if mutant.area not in coverage:
            coverage[mutant.area] = Coverage(mutant.area)
        own = coverage[mutant.area]
        if (mutant.file, mutant.name, own.digest) not in survived:
            began = time.monotonic()
            is_dead = is_killed(mutant, own)
            with results.open("a") as file:
                entry = {"file": mutant.file, "name": mutant.name, "digest": own.digest, "killed": is_dead}
                file.write(json.dumps(entry) + "\n")
            outcome = "killed" if is_dead else "SURVIVED"
            took = f"{time.monotonic() - began:.0f} s"
            print(f"{place}/{len(tried)} {outcome} in {took}: {_describe(mutant)}", flush=True)
            if is_dead:
                continue
        survivors.append(mutant)
    for mutant in known:
        if mutant.equivalent:
            print(f"equivalent: {_describe(mutant)}: {mutant.equivalent}")
    print(f"{len(survivors)} of {len(tried)} survive")
    for mutant in survivors:
        print(f"  {_describe(mutant)}")
    sys.exit(len(survivors) > MAX_SURVIVING_SHARE * len(tried) or any(one in known for one in survivors))


if __name__ == "__main__":
    main()
