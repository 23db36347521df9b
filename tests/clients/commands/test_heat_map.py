"""Word alignments, drawn to a file."""

import sys

import pytest
from click import ClickException
from matplotlib.image import imread
from tests.clients.commands.test_alignment_picture import GOOD_MORNING, hypothesis

from dragoman.cli.pictures import check_heat_map, write_heat_map


@pytest.mark.parametrize("name", ["picture.png", "picture.svg", "picture.pdf"])
def test_the_same_alignments_give_the_same_bytes(tmp_path, name):
    contents = []
    for _ in range(2):
        write_heat_map("Guten Morgen!", GOOD_MORNING, tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_the_darkest_cell_is_where_most_attention_falls(tmp_path):
    def darkness(weight):
        drawn = hypothesis("a", [((0, 1), (0, 1), weight)])
        write_heat_map("x", drawn, tmp_path / "picture.png")
        pixels = imread(tmp_path / "picture.png")[:, :, 0]
        height, width = pixels.shape
        # Words stand above and to the left: this quarter holds the cell alone.
        return 1 - pixels[height // 2 :, width // 2 :].mean()

    assert darkness(0.0) < darkness(0.5) < darkness(1.0)


def test_a_picture_is_as_large_as_its_words_are_many(tmp_path):
    write_heat_map("Guten Morgen!", GOOD_MORNING, tmp_path / "small.png")
    words = " ".join(["ja"] * 20)
    write_heat_map(words, hypothesis(words, []), tmp_path / "large.png")
    small, large = (imread(tmp_path / name).shape for name in ("small.png", "large.png"))
    assert large[0] > 2 * small[0]
    assert large[1] > 2 * small[1]


def test_signs_of_formulas_are_drawn_as_they_are(tmp_path):
    drawn = hypothesis("$x_ $y", [((0, 1), (0, 3), 0.5)])
    write_heat_map("$ ^", drawn, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").exists()


def test_characters_that_the_font_lacks_are_told_without_a_warning(tmp_path):
    drawn = hypothesis("日本", [((0, 1), (0, 2), 0.5)])
    assert not write_heat_map("x", drawn, tmp_path / "picture.png")
    assert write_heat_map("Guten Morgen!", GOOD_MORNING, tmp_path / "picture.png")


@pytest.mark.parametrize(
    ("source", "text", "message"),
    [("", "", "has no word"), ("ja " * 301, "yes", "301 by 1 words, but a picture holds 300")],
)
def test_what_can_not_be_drawn_is_said(tmp_path, source, text, message):
    with pytest.raises(ValueError, match=message):
        write_heat_map(source, hypothesis(text, []), tmp_path / "picture.png")
    assert not list(tmp_path.iterdir())


def test_a_name_that_no_picture_can_have_is_refused(tmp_path):
    with pytest.raises(ClickException, match=r"must end in \.png, \.svg, \.pdf"):
        check_heat_map(tmp_path / "picture.txt")
    with pytest.raises(ClickException, match="there is no folder"):
        check_heat_map(tmp_path / "absent" / "picture.png")
    check_heat_map(tmp_path / "picture.PNG")


def test_a_missing_library_names_what_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ClickException, match=r"needs matplotlib(.|\n)* '\.\[plot\]'"):
        check_heat_map(tmp_path / "picture.png")
