"""Translating files: what comes out, what goes wrong, and what a kill leaves behind."""

import gzip
import json
import os

import pytest
from tests.clients.jobs.running import DE_EN, Listener, cut_short, left_behind, numbered, run, write

from dragoman.jobs import FileJob, FormatOptions, JobError


def test_each_line_is_translated_in_its_place(client, server, tmp_path):
    server.servicer.reorders = True
    source, output = write(tmp_path, numbered(2001), ending=".txt")
    listener = Listener()
    summary = run(client, source, output, listener=listener)
    assert output.read_text() == numbered(2001, "ZEILE")
    assert (summary.lines, summary.failed, summary.errors) == (2001, 0, None)
    assert left_behind(output) == {"out.txt"}
    assert listener.lines == 2001
    assert listener.positions[-1] == source.stat().st_size


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"", b""),
        (b"a", b"A"),
        (b"a\n", b"A\n"),
        (b"\n\n", b"\n\n"),
        (b"a\r\nb\r\n", b"A\r\nB\r\n"),
        (b"\xef\xbb\xbfa\n", b"A\n"),
        ("a\u2028b\x0bc\x85d\n".encode(), "A\u2028B\x0bC\x85D\n".encode()),
        ("\U0001f600 ok\n".encode(), "\U0001f600 OK\n".encode()),
    ],
)
def test_line_endings_and_odd_lines_stay_what_they_are(client, tmp_path, given, expected):
    source, output = write(tmp_path, given)
    run(client, source, output)
    assert output.read_bytes() == expected


def test_failed_lines_are_recorded_and_left_empty(client, tmp_path):
    # Beside a line that is in UTF-8: a file without one is in another encoding, and refused.
    source, output = write(tmp_path, b"a\n!INTERNAL boom\nb\n\xff\xfe bad\n\xc3\xa4\n", ending=".txt")
    summary = run(client, source, output)
    assert output.read_bytes() == b"A\n\nB\n\n\xc3\x84\n"
    assert (summary.lines, summary.failed) == (5, 2)
    assert summary.errors == tmp_path / "out.txt.errors.jsonl"
    first, second = map(json.loads, summary.errors.read_text().splitlines())
    told = {"status": "INTERNAL", "message": "scripted INTERNAL", "text": "!INTERNAL boom"}
    assert first == {"line": 2, **told}
    assert (second["line"], second["status"]) == (4, "INVALID_ARGUMENT")
    assert "byte 0 is 0xff" in second["message"]
    assert second["text"] == "\\xff\\xfe bad"


JSON_LINES = [
    (
        '{"id": 7, "text": "grüß dich", "nested": {"a": [1.5]}}',
        '{"id": 7, "text": "grüß dich", "nested": {"a": [1.5]}, "translation": "GRÜSS DICH"}',
        None,
    ),
    ("", "", None),
    ('{"text": 3}', '{"text": 3, "translation": null}', "INVALID_ARGUMENT"),
    ("no json", '{"translation": null}', "INVALID_ARGUMENT"),
    ("[1]", '{"translation": null}', "INVALID_ARGUMENT: not a JSON object but an array"),
    (r'{"text": "\ud800"}', r'{"text": "\ud800", "translation": null}', "INVALID_ARGUMENT"),
    ('{"text": "!NOT_FOUND x"}', '{"text": "!NOT_FOUND x", "translation": null}', "NOT_FOUND"),
    (r'{"text": "a", "other": "\udc80"}', r'{"text": "a", "other": "\udc80", "translation": "A"}', None),
    (
        '{"n": 1e400, "text":"a" , "m": 0.12345678901234567890123 } ',
        '{"n": 1e400, "text":"a" , "m": 0.12345678901234567890123, "translation": "A"}',
        None,
    ),
    # Nothing of theirs is replaced: what an earlier run wrote comes back as it was.
    (
        '{"text": "a", "translation": "?", "n": 1e999}',
        '{"text": "a", "translation": "?", "n": 1e999}',
        'INVALID_ARGUMENT: the object has a "translation" already; remove or rename it',
    ),
    (
        '{"text": "a", "translation_truncated": true}',
        '{"text": "a", "translation_truncated": true, "translation": null}',
        'INVALID_ARGUMENT: the object has a "translation_truncated" already; remove or rename it',
    ),
    ("{}", '{"translation": null}', "INVALID_ARGUMENT"),
]
"""A line, what becomes of it, and how its failure is told."""


def test_json_lines_come_back_with_a_translation(client, tmp_path):
    source, output = write(tmp_path, "".join(f"{line}\n" for line, _, _ in JSON_LINES), ending=".jsonl")
    summary = run(client, source, output)
    assert output.read_text().splitlines() == [translated for _, translated, _ in JSON_LINES]
    errors = [json.loads(line) for line in summary.errors.read_text().splitlines()]
    failed = {number: told for number, (_, _, told) in enumerate(JSON_LINES, 1) if told}
    assert [error["line"] for error in errors] == list(failed)
    for error, told in zip(errors, failed.values(), strict=True):
        assert f"{error['status']}: {error['message']}".startswith(told)


def test_json_lines_may_have_ranges_of_their_text_that_stay(client, server, tmp_path):
    lines = [
        '{"text": "Herr Grün mag Grün.", "protected_ranges": [[5, 9]]}',
        '{"text": "ja", "protected_ranges": null}',
        '{"protected_ranges": [], "text": "nein"}',
        '{"text": "ja", "protected_ranges": [[0, 3]]}',
        '{"text": "ja", "protected_ranges": [0, 1]}',
        '{"text": "ja", "protected_ranges": [[0, "1"]]}',
        '{"text": "ja", "protected_ranges": "0:1"}',
        '{"text": "ja", "protected_ranges": {}}',
    ]
    source, output = write(tmp_path, "".join(f"{line}\n" for line in lines), ending=".jsonl")
    summary = run(client, source, output)
    translated = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["translation"] for line in translated] == ["HERR GRÜN MAG GRÜN.", "JA", "NEIN"] + [None] * 5
    assert [line["protected_ranges"] for line in translated[:3]] == [[[5, 9]], None, []]
    assert server.servicer.ranges[:3] == [[(5, 9)], [], []]
    errors = [json.loads(line) for line in summary.errors.read_text().splitlines()]
    assert [error["line"] for error in errors] == [4, 5, 6, 7, 8]
    told = ("a text of 2 code points", "not a pair", "not a pair of integers", "a string", "an object")
    assert all(words in error["message"] for words, error in zip(told, errors, strict=True))


def test_ranges_are_still_around_their_words_where_lines_are_joined(client, server, tmp_path):
    text = "Herr \n Grün mag  \r\n\tden Blauen\nund\n- Grün\n\n你\n好 \n"
    words = ["Grün", "den", "Blauen\nund", "- Grün", "你\n好"]
    ranges = [[text.index(word), text.index(word) + len(word)] for word in words]
    ranges += [[4, 7], [text.index("mag") - 1, text.index("den")]]
    line = json.dumps({"text": text, "protected_ranges": ranges}) + "\n"
    run(client, *write(tmp_path, line, ending=".jsonl"), options=FormatOptions(join_lines=True))
    ((joined,),) = server.servicer.messages
    assert [joined[start:end] for start, end in server.servicer.ranges[0]] == [
        *("Grün", "den", "Blauen und", "- Grün", "你好", "mag")
    ]


def objects_of(texts: list[str]) -> str:
    return "".join(json.dumps({"text": text}) + "\n" for text in texts)


def test_lines_whose_translation_lacks_an_end_are_counted_and_marked(client, server, tmp_path):
    texts = ["a", "truncated", "limited", "limited truncated", "", "!INTERNAL limited"]
    source, output = write(tmp_path, objects_of(texts), ending=".jsonl")
    # Counted over both runs.
    cut_short(client, server, source, output, lines=2)
    summary = run(client, source, output)
    assert (summary.lines, summary.failed, summary.truncated, summary.limited) == (6, 1, 2, 2)
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line.get("translation_truncated") for line in lines] == [None, True, True, True, None, None]
    assert lines[1] == {"text": "truncated", "translation": "TRUNCATED", "translation_truncated": True}


def test_the_least_sure_are_told_over_all_runs_and_each_has_its_confidence(client, server, tmp_path):
    shares = [0.9, 0.25, None, 0.5, 0.0, *(round(0.75 + number / 100, 2) for number in range(20))]
    texts = ["a" if share is None else f"sure {share:.2f}" for share in shares]
    source, output = write(tmp_path, objects_of(texts), ending=".jsonl")
    cut_short(client, server, source, output, lines=3)
    summary = run(client, source, output)
    assert summary.doubtful[:4] == [(5, 0.0), (2, 0.25), (4, 0.5), (6, 0.75)]
    assert len(summary.doubtful) == 10
    rated = [share for share in shares if share is not None]
    assert summary.confidence == pytest.approx(sum(rated) / len(rated))
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line.get("translation_confidence") for line in lines] == shares
    source.write_text('{"text": "a"}\n')
    summary = run(client, source, tmp_path / "none.jsonl")
    assert (summary.confidence, summary.doubtful) == (None, [])
    source.write_text('{"text": "a", "translation_confidence": 0.5}\n')
    assert run(client, source, tmp_path / "bad.jsonl").failed == 1


def test_compressed_files_are_read_and_written(client, tmp_path):
    source, output = write(tmp_path, gzip.compress(b"a\n" * 500) + gzip.compress(b"b\n"), ending=".txt.gz")
    run(client, source, output)
    assert gzip.decompress(output.read_bytes()) == b"A\n" * 500 + b"B\n"
    plain = tmp_path / "plain.txt"
    run(client, source, plain)
    assert plain.read_bytes() == b"A\n" * 500 + b"B\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (gzip.compress(os.urandom(3000).hex().encode(), 0)[:-300], r"is damaged after line \d.*--restart"),
        (b"a\n", r"is not compressed by gzip .*; name it without \.gz"),
        (b"", "has no byte: it is no gzip file"),
    ],
    ids=["damaged", "plain", "empty"],
)
def test_what_is_no_gzip_file_is_told_and_leaves_nothing(client, tmp_path, content, told):
    source, output = write(tmp_path, content, ending=".gz")
    with pytest.raises(JobError, match=rf"in\.gz {told}"):
        run(client, source, output)
    assert left_behind(output) == set()


def test_damage_is_told_however_many_streams_it_takes(client, server, tmp_path):
    lines = os.urandom(30_000).hex(" ", 10).replace(" ", "\n").encode()
    source, output = write(tmp_path, gzip.compress(lines, 0)[:-300], ending=".gz")
    # All but the last lines are answered, the damage is read, and then the stream breaks.
    server.servicer.disconnects.append(2_900)
    with pytest.raises(JobError, match=r"in\.gz is damaged after line 29\d\d"):
        run(client, source, output, window=4_000)
    assert not server.servicer.disconnects
    assert not output.exists()


def test_lines_under_way_are_bounded(client, server, tmp_path):
    source, output = write(tmp_path, "a\n" * 500)
    ahead = []

    class Watcher(Listener):
        def on_line(self, **told):
            super().on_line(**told)
            ahead.append(server.servicer.items - self.lines)

    run(client, source, output, window=16, listener=Watcher())
    assert max(ahead) <= 16


def test_existing_output_is_not_replaced_unasked_and_then_with_its_errors(client, tmp_path):
    source, output = write(tmp_path, "!INTERNAL a\n")
    output.write_text("precious")
    with pytest.raises(JobError, match="--overwrite"):
        run(client, source, output)
    assert output.read_text() == "precious"
    assert left_behind(output) == {"out"}
    run(client, source, output, overwrite=True)
    assert left_behind(output) == {"out", "out.errors.jsonl"}
    source.write_text("a\n")
    run(client, source, output, overwrite=True)
    assert output.read_text() == "A\n"
    assert left_behind(output) == {"out"}


@pytest.mark.parametrize(
    ("source", "output"),
    [
        *(("a.txt", "a.txt"), ("a.jsonl", "a.txt"), ("a", "b.jsonl.gz")),
        *((f"a.txt{suffix}", "a.txt") for suffix in (".partial", ".compressed", ".progress.json")),
        *(("a.jsonl.errors.jsonl", "a.jsonl"), ("./b/../a.txt.partial", "a.txt")),
    ],
)
def test_files_that_cannot_be_meant_are_refused(tmp_path, source, output):
    (tmp_path / "b").mkdir()
    with pytest.raises(JobError):
        FileJob(tmp_path / source, tmp_path / output, DE_EN)


def test_a_pipe_and_a_folder_that_is_not_there_are_told_before_anything_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(JobError, match="no plain file"):
        FileJob(tmp_path / "pipe", tmp_path / "out", DE_EN)
    with pytest.raises(JobError, match=r"there is no folder .*/nowhere for .*/nowhere/out"):
        FileJob(tmp_path / "in", tmp_path / "nowhere" / "out", DE_EN)


@pytest.mark.parametrize(
    "wrong",
    [
        *("{}", "[]", '{"job": {}', '{"job": {}, "checkpoint": {"miles": 3}}'),
        *({"lines": lines} for lines in (1_000_000_000, "7", -1, 1.5, True)),
        *({"failed": 9}, {"output_bytes": -4}, {"complete": True}, {"complete": 1}, {"model": 7}),
    ],
    ids=str,
)
def test_progress_that_is_damaged_or_can_not_be_true_is_told(client, server, tmp_path, wrong):
    source, output = write(tmp_path, "a\n" * 100)
    cut_short(client, server, source, output, lines=5)
    progress = tmp_path / "out.progress.json"
    if isinstance(wrong, dict):
        entry = json.loads(progress.read_text())
        entry["checkpoint"] |= wrong
        wrong = json.dumps(entry)
    progress.write_text(wrong)
    with pytest.raises(JobError, match=r"out\.progress\.json is damaged.*--restart"):
        run(client, source, output)
    assert not output.exists()
    run(client, source, output, restart=True)
    assert output.read_text() == "A\n" * 100


@pytest.mark.parametrize("suffix", [".partial", ".errors.jsonl.partial", ".progress.json.new", ".compressed"])
def test_a_job_writes_through_no_link(client, tmp_path, suffix):
    (source, _), output, other = write(tmp_path, "a\n"), tmp_path / "out.gz", tmp_path / "other"
    other.write_text("of another")
    (tmp_path / f"out.gz{suffix}").symlink_to(other)
    with pytest.raises(JobError, match=rf"out\.gz{suffix} is a symbolic link.*remove it"):
        run(client, source, output)
    assert other.read_text() == "of another"


def test_answers_of_two_models_end_a_job(client, server, tmp_path):
    source, output = write(tmp_path, "a\n" * 40)
    server.servicer.mixes_versions = True
    with pytest.raises(JobError, match=r"answered from de-en/9, and de-en/1 has translated the lines so far"):
        run(client, source, output)
    assert not output.exists()
