"""A real aligner of a small language, trained once, and its words."""

from pathlib import Path

import pytest
from tests.training.alignment.test_align_command import train


@pytest.fixture(scope="session")
def aligner_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("served_aligner"))


@pytest.fixture(scope="session")
def aligners(aligner_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as --aligners takes it, with `small`."""
    folder = tmp_path_factory.mktemp("aligners")
    (folder / "small").symlink_to(aligner_folder)
    return folder
