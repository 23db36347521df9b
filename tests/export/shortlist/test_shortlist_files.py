"""Shortlists are learnt of text, or read of files: parallel text, Marian's lexicon or CTranslate2's vmap."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from dragoman_bundle import open_bundle
from dragoman_bundle.shortlist import Shortlist
from tests.export.commands import call
from tests.export.ctranslate2_model import Form, write_model
from tests.export.marian_checkpoint import SOURCE_TEXT, TARGET_TEXT, write_marian

from dragoman_export.get.cli import get
from dragoman_export.importers.ctranslate2 import load_ctranslate2
from dragoman_export.importers.hf import load_checkpoint
from dragoman_export.importers.reading import Reading
from dragoman_export.model import Subject
from dragoman_export.options import ShortlistOptions
from dragoman_export.shortlist.builder import learn_shortlist
from dragoman_export.shortlist.lexicon import LexiconError, read_lexicon
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus

Read = Callable[..., Shortlist]
LEXICON = """\
k a 0.9
l a 0.0999
m a 0.000001
NULL a 0.5
l b 1.0
o NULL 0.3
</s> </s> 1
"""
VMAP = "\tq r\na\tk l\nb c\tn\nb\tm\n"


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """Of letters: a to j become k to r."""
    folder = tmp_path_factory.mktemp("letters")
    write_model(folder, Form())
    return load_ctranslate2(folder, Reading(source_language="de", target_language="en"))


@pytest.fixture
def read(subject: Subject, tmp_path: Path) -> Read:
    def run(content: str | bytes, **options: float) -> Shortlist:
        path = tmp_path / "lexicon"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        asked = ShortlistOptions(**{"num_frequent": 0, **options})  # type: ignore[arg-type]
        tokenizers = subject.source_tokenizer, subject.target_tokenizer
        return read_lexicon(path, *tokenizers, asked, lambda line: None)

    return run


def targets(subject: Subject, shortlist: Shortlist, piece: str) -> set[str]:
    """The target pieces that a source piece brings along."""
    token = subject.source_tokenizer.id_of(piece)
    assert token is not None
    first, last = shortlist.first_V[token], shortlist.first_V[token + 1]
    return {subject.target_tokenizer.piece(id_) for id_ in shortlist.target_N[first:last]}


def always(subject: Subject, shortlist: Shortlist) -> set[str]:
    return {subject.target_tokenizer.piece(id_) for id_ in shortlist.always}


@pytest.mark.parametrize("is_gzipped", [False, True])
def test_a_lexicon_of_marian_is_read(subject: Subject, read: Read, is_gzipped: bool) -> None:
    shortlist = read(gzip.compress(LEXICON.encode()) if is_gzipped else LEXICON)
    assert targets(subject, shortlist, "a") == {"k", "l"}
    assert targets(subject, shortlist, "b") == {"l"}
    assert targets(subject, shortlist, "c") == set()
    assert always(subject, shortlist) == {"</s>"}


def test_of_a_lexicon_as_much_is_kept_as_is_asked(subject: Subject, read: Read) -> None:
    assert targets(subject, read(LEXICON, min_probability=0.0), "a") == {"k", "l", "m"}
    assert targets(subject, read(LEXICON, min_probability=0.5), "a") == {"k"}
    assert targets(subject, read(LEXICON, max_targets=1), "a") == {"k"}
    # The first of a vocabulary are its frequent ones.
    assert always(subject, read(LEXICON, num_frequent=6)) == {"</s>", "k", "l", "m"}


def test_a_vmap_is_read_whole(subject: Subject, read: Read) -> None:
    shortlist = read(VMAP)
    assert targets(subject, shortlist, "a") == {"k", "l"}
    # A phrase's targets are those of one of its pieces, which stands in all of its sentences.
    assert targets(subject, shortlist, "b") | targets(subject, shortlist, "c") == {"m", "n"}
    assert "n" in targets(subject, shortlist, "c")
    assert always(subject, shortlist) == {"</s>", "q", "r"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "lexicon is empty"),
        ("\n \n", "lexicon is empty"),
        ("ж я 0.5\nд а 1\n", "is of another vocabulary than the model, which has 0 of its 4 pieces"),
        ("ж\tя\nд\tа\n", "is of another vocabulary than the model, which has 0 of its 4 pieces"),
        ("k a\n", "line 1: neither a target piece, a source piece and a probability"),
        ("k a 0.5\nl a much\n", "line 2: neither a target piece"),
        ("k a 1.5\n", "line 1: neither a target piece"),
        ("k a nan\n", "line 1: neither a target piece"),
        ("a\tk\nb k\n", "line 2: no tab between source and target pieces"),
        ("a\tk\tl\n", "line 1: no tab between"),
        (b"k a \xff\n", "line 1: no text in UTF-8"),
        (b"\x1f\x8bno gzip", "can't be read"),
        pytest.param(gzip.compress(LEXICON.encode() * 99)[:-20], "can't be read", id="cut-off-gzip"),
        pytest.param(gzip.compress(bytes(5_000_000)), "line 1: longer than 1048576 bytes", id="endless-line"),
    ],
)
def test_what_is_no_lexicon_of_the_model_is_refused(read: Read, content: str | bytes, message: str) -> None:
    with pytest.raises(LexiconError, match=message):
        read(content)


def test_a_lexicon_of_half_another_vocabulary_is_refused(read: Read) -> None:
    own = [f"k {letter} 0.5\n" for letter in "abcdefghi"]
    read("".join([*own, "k ж 0.5\n"]))
    with pytest.raises(LexiconError, match="which has 13 of its 18 pieces"):
        read("".join([*own[:4], *["k ж 0.5\n"] * 5]))


def test_the_same_vocabulary_offers_a_piece_for_itself(tmp_path: Path) -> None:
    # As names and numbers are copied.
    write_marian(tmp_path / "m")
    subject = load_checkpoint(tmp_path / "m")
    assert subject.source_tokenizer is not subject.target_tokenizer
    pieces = [subject.target_tokenizer.piece(id_) for id_ in (5, 6, 7)]
    (tmp_path / "vmap").write_text(f"{pieces[0]}\t{pieces[1]}\n")
    asked = ShortlistOptions()
    tokenizers = subject.source_tokenizer, subject.target_tokenizer
    shortlist = read_lexicon(tmp_path / "vmap", *tokenizers, asked, lambda line: None)
    assert targets(subject, shortlist, pieces[0]) == {pieces[0], pieces[1]}
    assert targets(subject, shortlist, pieces[2]) == {pieces[2]}


def invoke(tmp_path: Path, *options: object) -> tuple[int, str, Path]:
    folder = tmp_path / "models" / "de-en" / "1"
    return *call(get, "--out", folder, "--precisions", "int8", *options), folder


def write_text(tmp_path: Path, source: list[str], target: list[str]) -> tuple[Path, Path]:
    for side, lines in (("de", source), ("en", target)):
        (tmp_path / f"text.{side}").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path / "text.de", tmp_path / "text.en"


def test_an_imported_model_has_a_shortlist_of_any_parallel_text(tmp_path: Path) -> None:
    write_marian(tmp_path / "m")
    files = write_text(tmp_path, SOURCE_TEXT * 4, TARGET_TEXT * 4)
    sizes = ("--shortlist-targets", 5, "--shortlist-frequent", 3)
    code, output, folder = invoke(tmp_path, tmp_path / "m", "--shortlist-text", *files, *sizes)
    assert code == 0, output
    bundle = open_bundle(folder)
    assert bundle.shortlist is not None
    assert bundle.shortlist.target_vocabulary == bundle.manifest.target_vocabulary
    (dog,) = bundle.target_tokenizer.encode_ids(["dog"])
    (own,) = bundle.shortlist.candidates(bundle.source_tokenizer.encode_ids(["hund"]))
    assert set(dog) & set(own.tolist())
    card = " ".join((folder / "README.md").read_text().split())
    assert "--shortlist-text text.de text.en --shortlist-targets 5 --shortlist-frequent 3" in card
    assert str(tmp_path) not in card


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (SOURCE_TEXT, TARGET_TEXT[:2], "they must match line by line"),
        (["", ""], ["", ""], "hold no sentence pair"),
        (["a " * 999], ["b"], "no sentence pair has 64 tokens or fewer"),
    ],
)
def test_text_that_teaches_nothing_is_refused_and_nothing_written(
    tmp_path: Path, source: list[str], target: list[str], message: str
) -> None:
    write_marian(tmp_path / "m")
    files = write_text(tmp_path, source, target)
    code, output, folder = invoke(tmp_path, tmp_path / "m", "--shortlist-text", *files)
    assert code == 1
    assert message in output
    assert not folder.parent.exists() or not list(folder.parent.iterdir())


def test_a_lexicon_of_another_vocabulary_is_refused_and_nothing_written(tmp_path: Path) -> None:
    write_model(tmp_path / "m", Form())
    (tmp_path / "lex.s2t").write_text("ж я 0.5\n")
    options = ("--shortlist-lexicon", tmp_path / "lex.s2t", "--source-language", "de")
    code, output, folder = invoke(tmp_path, tmp_path / "m", *options, "--target-language", "en")
    assert (code, "is of another vocabulary than the model" in output) == (1, True)
    assert not folder.exists()


def test_pairs_of_which_normalization_leaves_nothing_teach_nothing(luong: Checkpoint) -> None:
    lines: list[str] = []
    nothing = "\u200b"
    corpus = Corpus(["a b", nothing, "c d", "e"], ["a b", "c", nothing, "e"])
    tokenizers = luong.source_tokenizer, luong.target_tokenizer
    learn_shortlist(corpus, *tokenizers, ShortlistOptions(), lines.append, max_tokens=60, max_pairs=4)
    assert lines[0] == "shortlist: learning from 2 sentence pairs"
