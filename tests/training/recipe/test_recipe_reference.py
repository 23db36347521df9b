"""docs/reference/recipes.md names every key with its default."""

import dataclasses
from pathlib import Path

from dragoman_training.recipe.reference import reference
from dragoman_training.recipe.settings import TrainingConfig

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "recipes.md"


def test_the_page_is_what_the_settings_say() -> None:
    assert PAGE.read_text() == reference(), (
        "write it anew: python -m dragoman_training.recipe.reference > docs/reference/recipes.md"
    )


def test_every_key_is_there_with_its_default() -> None:
    lines = reference().splitlines()
    start = lines.index("## `[training]`")
    end = lines.index("## `[scheduled_sampling]`")
    for field in dataclasses.fields(TrainingConfig):
        (line,) = [line for line in lines[start:end] if line.startswith(f"| `{field.name}` |")]
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            assert f"| `{field.default}` |" in line
    assert any(line.startswith("| `alpha` | number | `0.2` |") for line in lines)
    assert '## `[model]` with `family = "bahdanau"`' in lines
