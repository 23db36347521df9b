"""The file of callers' limits, read strictly."""

from pathlib import Path

import pytest

from dragoman_server.errors import ServerFileError
from dragoman_server.service.callers import CallerLimits, limits_of, read_limits

KNOWN = {"ada", "bob", "eve"}


def write(folder: Path, text: str) -> Path:
    path = folder / "limits"
    path.write_text(text)
    return path


def test_a_caller_has_its_own_line_or_that_of_all_others(tmp_path: Path) -> None:
    limits = read_limits(
        write(
            tmp_path,
            "# who may how much\n\n* calls=4 characters-per-day=1000\n"
            "ada calls-per-minute=60 characters-per-minute=5\neve\tunlimited\n",
        ),
        KNOWN,
    )
    assert limits_of("ada", limits) == CallerLimits(calls_per_minute=60, characters_per_minute=5)
    assert limits_of("bob", limits) == CallerLimits(calls=4, characters_per_day=1000)
    assert limits_of("eve", limits) == CallerLimits()
    assert limits_of("bob", {}) == CallerLimits()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ada\n", "line 1: no limit stands behind the name"),
        ("* calls=1\n\nada calls=1\nada calls=2\n", "line 4: ada has a line already"),
        ("mallory calls=1\n", "line 1: 'mallory' is no caller of the file of tokens"),
        (
            "ada call=1\n",
            "line 1: 'call=1' is no limit; a line is NAME LIMIT=VALUE ..., and there are calls, ",
        ),
        ("ada calls\n", "line 1: calls is ''; it must be a whole number from 1"),
        ("ada calls=0\n", "line 1: calls is '0'"),
        ("ada calls=-1\n", "line 1: calls is '-1'"),
        ("ada calls=1.5\n", "line 1: calls is '1.5'"),
        ("ada calls=²\n", "line 1: calls is '²'"),
        ("ada calls=9999999999999999\n", "line 1: calls is '9999999999999999'"),
        ("ada calls=1 calls=2\n", "line 1: calls stands there twice"),
        ("ada unlimited calls=2\n", "line 1: 'unlimited' is no limit"),
        ("ada calls =2\n", "line 1: calls is ''"),
    ],
)
def test_a_bad_file_of_limits_is_refused_by_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ServerFileError) as caught:
        read_limits(path, KNOWN)
    assert str(caught.value).startswith(f"{path}, ")
    assert told in str(caught.value)


def test_a_file_of_limits_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServerFileError, match="nowhere can't be read: No such file"):
        read_limits(tmp_path / "nowhere", KNOWN)
