"""docs/reference/server.md is what the configuration says."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman_server.cli import serve
from dragoman_server.config import EngineConfig, RequestLimits
from dragoman_server.reference import reference

PAGE = Path(__file__).parents[2] / "docs/reference/server.md"


def test_the_page_is_what_the_configuration_says() -> None:
    assert PAGE.read_text() == reference(), (
        "write it anew: python -m dragoman_server.reference > docs/reference/server.md"
    )


@pytest.mark.parametrize(
    ("config", "name", "value", "said"),
    [
        (RequestLimits, "max_texts", 0, "max_texts is 0; it must be at least 1"),
        (RequestLimits, "max_message_bytes", 2**31, "it must be at least 1 and at most 2147483647"),
        (EngineConfig, "max_bulk_share", 1.5, "max_bulk_share is 1.5; it must be above 0 and at most 1"),
        (EngineConfig, "max_queue_seconds", float("nan"), "max_queue_seconds is nan; it must be above 0"),
    ],
)
def test_a_value_out_of_its_range_is_refused_by_name(
    config: type, name: str, value: float, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        config(**{name: value})


def test_the_help_has_the_groups_of_the_page() -> None:
    text = CliRunner().invoke(serve, ["--help"], prog_name="serve", terminal_width=100).output
    page = PAGE.read_text()
    headings = re.findall(r"^## (.*)", page, re.MULTILINE)
    assert re.findall(r"^(?!Usage|Help)(\w.*):$", text, re.MULTILINE) == headings
    for first in re.findall(r"^## .*\n\n.*\n.*\n\| `(--[\w-]+)`", page, re.MULTILINE):
        assert re.search(rf":\n  {first}\b", text), first
