"""Runs files of tests and writes as JSON which lines of some folders each of them runs, and its seconds.

python -m tests.mutants.recording RECORD FOLDER,FOLDER TEST_FILE...
"""

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage


class Recording:
    """A plugin of pytest. What a fixture of many files runs counts for the first of them."""

    def __init__(self, folders: list[str]) -> None:
        self._root = Path.cwd()
        self._coverage = Coverage(data_file=None, config_file=False, source=folders)
        self._seconds: Counter[str] = Counter()
        """Of this process, whatever else the machine does."""
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        file = str(item.path.relative_to(self._root))
        self._coverage.switch_context(file)
        began = time.process_time()
        try:
            return (yield)
        finally:
            self._seconds[file] += time.process_time() - began
            self._coverage.switch_context("")

    def by_file(self) -> dict[str, dict[str, object]]:
        self._coverage.stop()
        data = self._coverage.get_data()
        lines: dict[str, dict[str, list[int]]] = defaultdict(dict)
        for source in data.measured_files():
            name = str(Path(source).relative_to(self._root))
            for line, files in data.contexts_by_lineno(source).items():
                for file in filter(None, files):
                    lines[file].setdefault(name, []).append(line)
        return {file: {"seconds": seconds, "lines": lines[file]} for file, seconds in self._seconds.items()}


if __name__ == "__main__":
    record, folders, *files = sys.argv[1:]
    recording = Recording(folders.split(","))
    code = pytest.main(["-x", "-n", "0", "-p", "no:cacheprovider", *files], plugins=[recording])
    Path(record).write_text(json.dumps(recording.by_file()))
    sys.exit(code)
