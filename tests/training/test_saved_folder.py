"""Arrays in saved folders, and what is said of those that are damaged."""

from contextlib import suppress
from pathlib import Path

import numpy as np

from dragoman_training.saved_folder import read_arrays, write_arrays


def test_arrays_are_read_as_they_were_or_refused_with_their_name(tmp_path: Path) -> None:
    path = tmp_path / "numbers.npz"
    numbers = np.random.default_rng(1).integers(0, 50, 500)
    write_arrays(path, {"numbers": numbers})
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        try:
            # The name of an array has no checksum.
            with suppress(KeyError):
                np.testing.assert_array_equal(read_arrays(path)["numbers"], numbers)
        except ValueError as error:
            refused += str(error).startswith("numbers.npz can't be read: ")
    assert refused > len(whole) // 7 * 0.8
