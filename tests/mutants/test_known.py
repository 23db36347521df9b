"""Mutants that are always tried are changes of the sources as they are."""

from tests.mutants.__main__ import ROOT, known_mutants
from tests.mutants.mutation import mutations


def test_every_known_mutant_changes_its_file() -> None:
    for mutant in known_mutants(ROOT):
        assert mutant.source != (ROOT / mutant.file).read_text()
        compile(mutant.source, mutant.file, "exec")


def test_each_kind_of_change_is_made_where_it_stands() -> None:
    source = (
        'def f(a: int = 1) -> bool:\n    """Ä 1."""\n    x.ä = "ö" + f"{a + 1}"\n    return a < 2 and not a\n'
    )
    lines = source.splitlines()
    changed = [one.apply(source).splitlines() for one in mutations(source)]
    found = [(place, line) for other in changed for place, line in enumerate(other) if line != lines[place]]
    assert sorted(found) == [
        (0, "def f(a: int = (1 + 1)) -> bool:"),
        (0, "def f(a: int = (1 - 1)) -> bool:"),
        (2, "    pass"),
        (3, "    return (a < 2 or not a)"),
        (3, "    return (a <= 2) and not a"),
        (3, "    return None"),
        (3, "    return a < (2 + 1) and not a"),
        (3, "    return a < (2 - 1) and not a"),
        (3, "    return a < 2 and (a)"),
    ]
