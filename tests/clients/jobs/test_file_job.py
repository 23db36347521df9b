"""Translating files: what comes out, what goes wrong, and what a kill leaves behind."""

import errno
import fcntl
import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf import duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2

from dragoman import Client, ModelNotFoundError, Settings, UnavailableError
from dragoman.jobs import FileJob, FormatOptions, JobError
from dragoman.jobs import journal as journal_module
from dragoman.texts import MAX_STREAM_TEXT_BYTES

DE_EN = Settings(source="de", target="en")
PARTIAL = (".partial", ".errors.jsonl.partial", ".progress.json")
"""What the names of files end in that a job leaves behind to go on with."""


class Listener:
    """Notes what a job tells."""

    def __init__(self):
        self.resumed = None
        self.lines = 0
        self.positions = []
        self.waits = []

    def on_start(self, *, resumed, failed):
        self.resumed = resumed

    def on_line(self, *, failed, position):
        self.lines += 1
        self.positions.append(position)

    def on_save(self, *, lines):
        pass

    def on_wait(self, error, seconds):
        self.waits.append(seconds)


@pytest.fixture
def client(server):
    with Client(server.address) as connected:
        yield connected


def run(client, source: Path, output: Path, settings=DE_EN, listener=None, **options):
    flags = {name: options.pop(name) for name in ("overwrite", "restart") if name in options}
    return FileJob(source, output, settings, **options).run(client, listener or Listener(), **flags)


def left_behind(output: Path) -> set[str]:
    return {path.name for path in output.parent.iterdir() if path.name.startswith(output.name)}


def test_each_line_is_translated_in_its_place(client, server, tmp_path):
    server.servicer.reorders = True
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"zeile {number}\n" for number in range(2001)))
    listener = Listener()
    summary = run(client, source, output, listener=listener)
    assert output.read_text() == "".join(f"ZEILE {number}\n" for number in range(2001))
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
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_bytes(given)
    run(client, source, output)
    assert output.read_bytes() == expected


def test_failed_lines_are_recorded_and_left_empty(client, tmp_path):
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    # Beside a line that is in UTF-8: a file without one is in another encoding, and refused.
    source.write_bytes(b"a\n!INTERNAL boom\nb\n\xff\xfe bad\n\xc3\xa4\n")
    summary = run(client, source, output)
    assert output.read_bytes() == b"A\n\nB\n\n\xc3\x84\n"
    assert (summary.lines, summary.failed) == (5, 2)
    assert summary.errors == tmp_path / "out.txt.errors.jsonl"
    first, second = map(json.loads, summary.errors.read_text().splitlines())
    assert first == {
        "line": 2,
        "status": "INTERNAL",
        "message": "scripted INTERNAL",
        "text": "!INTERNAL boom",
    }
    assert (second["line"], second["status"]) == (4, "INVALID_ARGUMENT")
    assert "byte 0 is 0xff" in second["message"]
    assert second["text"] == "\\xff\\xfe bad"


def test_json_lines_come_back_with_a_translation(client, tmp_path):
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(
        '{"id": 7, "text": "grüß dich", "nested": {"a": [1.5]}}\n'
        "\n"
        '{"text": 3}\n'
        "no json\n"
        "[1]\n"
        '{"text": "\\ud800"}\n'
        '{"text": "!NOT_FOUND x"}\n'
        '{"text": "a", "other": "\\udc80"}\n'
        '{"n": 1e400, "text":"a" , "m": 0.12345678901234567890123 } \n'
        '{"text": "a", "translation": "?", "n": 1e999}\n'
        '{"text": "a", "translation_truncated": true}\n'
        "{}\n".encode()
    )
    summary = run(client, source, output)
    lines = output.read_bytes().splitlines()
    assert lines[0].decode() == (
        '{"id": 7, "text": "grüß dich", "nested": {"a": [1.5]}, "translation": "GRÜSS DICH"}'
    )
    assert lines[1] == b""
    assert lines[2] == b'{"text": 3, "translation": null}'
    assert json.loads(lines[3]) == json.loads(lines[4]) == {"translation": None}
    assert json.loads(lines[5])["translation"] is None
    assert json.loads(lines[6]) == {"text": "!NOT_FOUND x", "translation": None}
    assert json.loads(lines[7]) == {"text": "a", "other": "\udc80", "translation": "A"}
    assert lines[8] == b'{"n": 1e400, "text":"a" , "m": 0.12345678901234567890123, "translation": "A"}'
    # Nothing of theirs is replaced: what an earlier run wrote comes back as it was.
    assert lines[9] == b'{"text": "a", "translation": "?", "n": 1e999}'
    assert lines[10] == b'{"text": "a", "translation_truncated": true, "translation": null}'
    assert lines[11] == b'{"translation": null}'
    errors = [json.loads(line) for line in summary.errors.read_text().splitlines()]
    assert [error["line"] for error in errors] == [3, 4, 5, 6, 7, 10, 11, 12]
    assert errors[5]["message"] == 'the object has a "translation" already; remove or rename it'
    assert errors[6]["message"] == 'the object has a "translation_truncated" already; remove or rename it'
    assert errors[2]["message"] == "not a JSON object but an array"
    assert [error["status"] for error in errors] == [
        *["INVALID_ARGUMENT"] * 4,
        "NOT_FOUND",
        *["INVALID_ARGUMENT"] * 3,
    ]


def test_json_lines_may_have_ranges_of_their_text_that_stay(client, server, tmp_path):
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
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
    source.write_text("".join(f"{line}\n" for line in lines))
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
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"text": text, "protected_ranges": ranges}) + "\n")
    run(client, source, tmp_path / "out.jsonl", options=FormatOptions(join_lines=True))
    ((joined,),) = server.servicer.messages
    assert [joined[start:end] for start, end in server.servicer.ranges[0]] == [
        *("Grün", "den", "Blauen und", "- Grün", "你好", "mag")
    ]


def test_lines_whose_translation_lacks_an_end_are_counted_and_marked(client, server, tmp_path):
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    texts = ["a", "truncated", "limited", "limited truncated", "", "!INTERNAL limited"]
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    # Counted over both runs.
    server.servicer.disconnects.append(2)
    with pytest.raises(UnavailableError):
        run(client, source, output, patience_seconds=0)
    summary = run(client, source, output)
    assert (summary.lines, summary.failed, summary.truncated, summary.limited) == (6, 1, 2, 2)
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line.get("translation_truncated") for line in lines] == [None, True, True, True, None, None]
    assert lines[1] == {"text": "truncated", "translation": "TRUNCATED", "translation_truncated": True}


def test_compressed_files_are_read_and_written(client, tmp_path):
    source, output = tmp_path / "in.txt.gz", tmp_path / "out.txt.gz"
    source.write_bytes(gzip.compress(b"a\n" * 500) + gzip.compress(b"b\n"))
    run(client, source, output)
    assert gzip.decompress(output.read_bytes()) == b"A\n" * 500 + b"B\n"
    plain = tmp_path / "plain.txt"
    run(client, source, plain)
    assert plain.read_bytes() == b"A\n" * 500 + b"B\n"


def test_damaged_compression_is_told_with_its_line(client, tmp_path):
    source, output = tmp_path / "in.gz", tmp_path / "out"
    source.write_bytes(gzip.compress(os.urandom(3000).hex().encode() + b"\n", 0)[:-300])
    with pytest.raises(JobError, match=r"in\.gz is damaged after line \d.*--restart"):
        run(client, source, output)
    assert left_behind(output) == set()


def test_a_file_that_is_not_compressed_as_its_name_says_is_told_so(client, tmp_path):
    source = tmp_path / "in.gz"
    source.write_text("a\n")
    with pytest.raises(JobError, match=r"in\.gz is not compressed by gzip .*; name it without \.gz"):
        run(client, source, tmp_path / "out")


def test_damage_is_told_however_many_streams_it_takes(client, server, tmp_path):
    source, output = tmp_path / "in.gz", tmp_path / "out"
    source.write_bytes(gzip.compress(os.urandom(30_000).hex(" ", 10).replace(" ", "\n").encode(), 0)[:-300])
    # All but the last lines are answered, the damage is read, and then the stream breaks.
    server.servicer.disconnects.append(2_900)
    with pytest.raises(JobError, match=r"in\.gz is damaged after line 29\d\d"):
        run(client, source, output, window=4_000)
    assert not server.servicer.disconnects
    assert not output.exists()


def test_lines_under_way_are_bounded(client, server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 500)
    ahead = []

    class Watcher(Listener):
        def on_line(self, **told):
            super().on_line(**told)
            ahead.append(server.servicer.items - self.lines)

    run(client, source, output, window=16, listener=Watcher())
    assert max(ahead) <= 16


def test_existing_output_is_not_replaced_unasked(client, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n")
    output.write_text("precious")
    with pytest.raises(JobError, match="--overwrite"):
        run(client, source, output)
    assert output.read_text() == "precious"
    assert left_behind(output) == {"out"}
    run(client, source, output, overwrite=True)
    assert output.read_text() == "A\n"


def test_overwriting_drops_the_errors_of_the_run_before(client, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("!INTERNAL a\n")
    run(client, source, output)
    source.write_text("a\n")
    run(client, source, output, overwrite=True)
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


def test_a_pipe_is_refused_before_anything_is_read_from_it(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(JobError, match="no plain file"):
        FileJob(pipe, tmp_path / "out", DE_EN)


@pytest.mark.parametrize("content", ["{}", "[]", '{"job": {}', '{"job": {}, "checkpoint": {"miles": 3}}'])
def test_damaged_progress_is_told(client, tmp_path, content):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n")
    (tmp_path / "out.progress.json").write_text(content)
    with pytest.raises(JobError, match=r"out\.progress\.json is damaged.*--restart"):
        run(client, source, output)
    run(client, source, output, restart=True)
    assert output.read_text() == "A\n"


@pytest.mark.parametrize("code", [code_pb2.CANCELLED, code_pb2.ABORTED])
def test_a_stream_that_the_server_ends_is_tried_again(client, server, tmp_path, code):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\nb\n")
    server.servicer.failures.append(status_pb2.Status(code=code))
    listener = Listener()
    run(client, source, output, listener=listener)
    assert output.read_text() == "A\nB\n"
    assert len(listener.waits) == 1


def test_server_that_goes_away_is_waited_for(client, server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"zeile {number}\n" for number in range(300)))
    server.servicer.disconnects.extend([100, 0, 50])
    listener = Listener()
    run(client, source, output, listener=listener, window=8)
    assert output.read_text() == "".join(f"ZEILE {number}\n" for number in range(300))
    assert listener.lines == 300
    assert listener.waits


def test_server_that_is_started_again_is_found(client, server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"zeile {number}\n" for number in range(300)))
    server.servicer.delay_seconds = 0.003
    halfway = threading.Event()

    class Waiter(Listener):
        def on_line(self, **told):
            super().on_line(**told)
            if self.lines == 100:
                halfway.set()

    def restart():
        halfway.wait()
        server.stop()
        time.sleep(0.3)
        server.start()

    restarter = threading.Thread(target=restart)
    restarter.start()
    run(client, source, output, listener=Waiter(), window=8)
    restarter.join()
    assert output.read_text() == "".join(f"ZEILE {number}\n" for number in range(300))


def test_server_that_stays_away_ends_the_job_which_then_goes_on(client, server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 100)
    server.servicer.disconnects.append(40)
    with pytest.raises(UnavailableError):
        run(client, source, output, window=8, patience_seconds=0)
    listener = Listener()
    run(client, source, output, listener=listener)
    assert listener.resumed == 40
    assert output.read_text() == "A\n" * 100


@pytest.mark.parametrize("model", [None, "de-en"])
def test_a_job_has_one_model_whatever_is_served_meanwhile(client, server, tmp_path, model):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 100)
    settings = replace(DE_EN, model=model)
    server.servicer.disconnects.extend([10, 20])

    class Publisher(Listener):
        def on_wait(self, error, seconds):
            server.servicer.versions.append("2")

    with pytest.raises(UnavailableError):
        run(client, source, output, settings, window=8, patience_seconds=0)
    server.servicer.versions.append("2")
    run(client, source, output, settings, listener=Publisher(), window=8)
    assert output.read_text() == "A\n" * 100
    assert [config.model for config in server.servicer.configs] == [model or "", "de-en/1", "de-en/1"]


def test_a_server_that_is_started_again_without_the_jobs_model_does_not_go_on(client, server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 100)
    server.servicer.disconnects.append(40)

    class Publisher(Listener):
        def on_wait(self, error, seconds):
            server.servicer.versions = ["2"]

    # Within a run, and in one that goes on.
    for _ in range(2):
        with pytest.raises(JobError, match=r"no longer has de-en/1.*--restart.*--model") as caught:
            run(client, source, output, listener=Publisher(), window=8)
        assert "there is no model 'de-en/1'" in str(caught.value)
        assert not output.exists()
    server.servicer.versions = ["1", "2"]
    listener = Listener()
    run(client, source, output, listener=listener)
    assert listener.resumed == 40
    assert {config.model for config in server.servicer.configs} == {"", "de-en/1"}


def test_a_job_of_before_its_model_was_noted_goes_on(client, server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 100)
    server.servicer.disconnects.append(40)
    with pytest.raises(UnavailableError):
        run(client, source, output, window=8, patience_seconds=0)
    progress = tmp_path / "out.progress.json"
    entry = json.loads(progress.read_text())
    assert entry["checkpoint"].pop("model") == "de-en/1"
    progress.write_text(json.dumps(entry))
    run(client, source, output)
    assert output.read_text() == "A\n" * 100
    assert [config.model for config in server.servicer.configs] == ["", ""]


def test_overloaded_line_is_tried_again(client, server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\nb\nc\n")
    delay = error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(nanos=750_000_000))
    server.servicer.overloads["b"] = server.status("RESOURCE_EXHAUSTED", "queue is full", delay)
    listener = Listener()
    summary = run(client, source, output, listener=listener)
    assert output.read_text() == "A\nB\nC\n"
    assert summary.failed == 0
    assert listener.waits == [0.75]


def test_silence_before_a_failure_costs_no_patience(client, server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n")
    server.servicer.delay_seconds = 0.4
    server.servicer.disconnects.append(0)
    listener = Listener()
    run(client, source, output, listener=listener, patience_seconds=0.3)
    assert output.read_text() == "A\n"
    assert len(listener.waits) == 1


def test_messages_get_smaller_where_the_server_takes_no_longer_ones(small_message_server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    lines = [f"zeile {number} ".ljust(12_000 if number in (50, 51, 99) else 800) for number in range(100)]
    source.write_text("\n".join(lines))
    with Client(small_message_server.address) as client:
        summary = run(client, source, output)
    assert (summary.lines, summary.failed) == (100, 3)
    assert output.read_text().split("\n") == ["" if len(line) > 10_000 else line.upper() for line in lines]
    records = [json.loads(record) for record in summary.errors.read_text().splitlines()]
    assert [record["line"] for record in records] == [51, 52, 100]
    assert {record["status"] for record in records} == {"RESOURCE_EXHAUSTED"}
    assert "too long for the server" in records[0]["message"]


def test_one_long_line_leaves_the_messages_after_it_as_large_as_before(small_message_server, tmp_path):
    source = tmp_path / "in"
    source.write_text("\n".join(["a" * 12_000, *["ja"] * 400]))
    with Client(small_message_server.address) as client:
        assert run(client, source, tmp_path / "out").failed == 1
    assert len(small_message_server.servicer.messages) < 100


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("item.text: has 11 characters, and a text", "the line's text has 11 characters, and a text"),
        ("item.text: the sentence at characters 0 to 9", "the sentence at characters 0 to 9"),
        ("a batch: item.text: has", "a batch: item.text: has"),
    ],
)
def test_what_the_server_tells_of_a_text_is_told_of_the_line(client, server, tmp_path, message, told):
    source = tmp_path / "in"
    source.write_text("a\n")
    server.servicer.overloads["a"] = server.status("INVALID_ARGUMENT", message)
    summary = run(client, source, tmp_path / "out")
    assert json.loads(summary.errors.read_text())["message"] == told


def test_line_over_the_transports_limit_fails_alone(client, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    longest = "a" * MAX_STREAM_TEXT_BYTES
    source.write_text(f"eins\n{longest}\n{longest}a\nzwei\n")
    summary = run(client, source, output)
    assert output.read_text() == f"EINS\n{longest.upper()}\n\nZWEI\n"
    assert (summary.lines, summary.failed) == (4, 1)
    record = json.loads(summary.errors.read_text())
    assert (record["line"], record["status"]) == (3, "INVALID_ARGUMENT")
    told = f"the line's text has {len(longest) + 1} bytes; at most {MAX_STREAM_TEXT_BYTES} can travel in "
    assert record["message"] == told + "one message"
    assert record["text"] == longest + "a"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("input", "the input has changed"),
        ("target", "target was en and is fr"),
        ("beam", "beam_size was not set and is 1"),
    ],
)
def test_another_job_does_not_go_on_with_this_ones_work(client, server, tmp_path, change, told):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 100)
    server.servicer.disconnects.append(40)
    with pytest.raises(UnavailableError):
        run(client, source, output, window=8, patience_seconds=0)
    changed = {"target": Settings(source="de", target="fr"), "beam": replace(DE_EN, beam_size=1)}
    settings = changed.get(change, DE_EN)
    if change == "input":
        source.write_text("b\n" * 100)
    with pytest.raises(JobError, match=f"belongs to another job: {told}; .*--restart"):
        run(client, source, output, settings)
    listener = Listener()
    run(client, source, output, settings, listener=listener, restart=True)
    assert listener.resumed == 0
    assert len(output.read_text().splitlines()) == 100


@pytest.mark.parametrize("change", ["emptied", "rewritten", "longer"])
def test_an_input_that_changes_meanwhile_ends_the_job_and_what_was_done_stays(
    client, server, tmp_path, change
):
    source, output = tmp_path / "in", tmp_path / "out"
    given = "".join(f"zeile {number}\n" for number in range(5000))
    source.write_text(given)

    class Changer(Listener):
        def on_line(self, *, failed, position):
            super().on_line(failed=failed, position=position)
            if self.lines == 100:
                changed = {
                    "emptied": "",
                    "rewritten": given.replace("zeile", "reihe"),
                    "longer": given + "x\n",
                }
                # In place: a file that takes the other's name is not what the job reads.
                with source.open("r+") as file:
                    file.truncate()
                    file.write(changed[change])

    with pytest.raises(JobError, match=r"was changed while the job read it.*--restart"):
        run(client, source, output, listener=Changer(), window=8, checkpoint_seconds=0)
    assert not output.exists()
    with pytest.raises(JobError, match=r"belongs to another job: the input has changed"):
        run(client, source, output)
    source.write_text(given)
    listener = Listener()
    run(client, source, output, listener=listener)
    assert listener.resumed == 99
    assert output.read_text() == given.upper()


def test_a_file_that_takes_the_inputs_name_meanwhile_is_not_read(client, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 1000)

    class Replacer(Listener):
        def on_line(self, *, failed, position):
            super().on_line(failed=failed, position=position)
            if self.lines == 10:
                (tmp_path / "new").write_text("b\n" * 2000)
                (tmp_path / "new").replace(source)

    assert run(client, source, output, listener=Replacer(), window=8).lines == 1000
    assert output.read_text() == "A\n" * 1000


def test_a_job_that_did_nothing_is_no_job(client, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 10)

    class Killed(Listener):
        def on_start(self, **told):
            for path in tmp_path.glob("out*"):
                shutil.copy(path, tmp_path / "killed")

    (tmp_path / "killed").mkdir()
    run(client, source, output, Settings(source="xx", target="en"), listener=Killed())
    output = tmp_path / "killed" / "out"
    assert len(left_behind(output)) == 3
    run(client, source, output)
    assert output.read_text() == "A\n" * 10
    assert left_behind(output) == {"out"}


@pytest.mark.parametrize("fails", ["at once", "after a kill", "on a full disk"])
def test_a_job_that_ends_before_its_first_line_leaves_nothing_behind(client, server, tmp_path, fails):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 10)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    class Failing(Listener):
        def on_start(self, **told):
            if fails == "on a full disk":
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))

    if fails == "after a kill":
        (tmp_path / "out.partial").write_text("A\nA\nA")
        (tmp_path / "out.errors.jsonl.partial").touch()
    server.servicer.failures.append(status_pb2.Status(code=code_pb2.NOT_FOUND, message="no such pair"))
    if fails == "on a full disk":
        server.servicer.failures.clear()
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with pytest.raises((ModelNotFoundError, OSError), match=r"no such pair|File too large.*out\."):
            run(client, source, output, listener=Failing())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert left_behind(output) == set()


def test_a_job_that_went_on_and_did_nothing_more_keeps_what_it_has(client, server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 100)
    server.servicer.disconnects.extend([40, 0])
    for _ in range(2):
        with pytest.raises(UnavailableError):
            run(client, source, output, window=8, patience_seconds=0)
        assert left_behind(output) == {f"out{suffix}" for suffix in PARTIAL}
    listener = Listener()
    run(client, source, output, listener=listener)
    assert listener.resumed == 40
    assert output.read_text() == "A\n" * 100


def test_a_full_disk_is_told_with_the_file_and_what_is_safe(client, tmp_path, monkeypatch):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"zeile {number}\n" for number in range(300)))

    class Narrow(Listener):
        saved = 0

        def on_save(self, *, lines):
            self.saved = lines

        def on_line(self, **told):
            super().on_line(**told)
            if self.lines == 100:
                resource.setrlimit(resource.RLIMIT_FSIZE, (2 * 100 * 8, hard))

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    listener = Narrow()
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with pytest.raises(OSError, match=r"File too large.*out\.partial"):
            run(client, source, output, listener=listener, checkpoint_seconds=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    again = Listener()
    run(client, source, output, listener=again)
    assert 100 <= again.resumed == listener.saved < 300
    assert output.read_text() == source.read_text().upper()


@pytest.mark.parametrize(
    ("fails", "file"),
    [
        ("journal.json.dump", "out.gz.progress.json.new"),
        ("container.shutil.copyfileobj", "out.gz.compressed"),
    ],
)
def test_a_full_disk_is_told_with_the_file_of_progress_or_of_compression_too(
    client, tmp_path, monkeypatch, fails, file
):
    def fail(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source, output = tmp_path / "in", tmp_path / "out.gz"
    source.write_text("a\n")
    monkeypatch.setattr(f"dragoman.jobs.{fails}", fail)
    with pytest.raises(OSError, match="No space left on device") as caught:
        run(client, source, output)
    assert caught.value.filename == str(tmp_path / file)


@pytest.mark.parametrize("name", ["out", "out.gz"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_finished_output_that_is_removed_before_it_has_its_name_is_missed(
    client, tmp_path, monkeypatch, name, overwrite
):
    def fail(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source, output = tmp_path / "in", tmp_path / name
    source.write_text("a\n")
    if overwrite:
        output.write_bytes(gzip.compress(b"another\n") if name.endswith(".gz") else b"another\n")
    with monkeypatch.context() as patched:
        patched.setattr("dragoman.jobs.output.Output.publish", fail)
        with pytest.raises(OSError, match="No space left on device"):
            run(client, source, output, overwrite=overwrite)
    (tmp_path / f"{name}.partial").unlink()
    with pytest.raises(JobError, match=r"\.partial has lost its end; begin anew with --restart"):
        run(client, source, output, overwrite=overwrite)
    run(client, source, output, overwrite=overwrite, restart=True)
    content = output.read_bytes()
    assert (gzip.decompress(content) if name.endswith(".gz") else content) == b"A\n"


def test_restart_drops_nothing_where_the_output_may_not_be_replaced(client, server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 100)
    output.write_text("another\n")
    server.servicer.disconnects.append(40)
    with pytest.raises(UnavailableError):
        run(client, source, output, window=8, overwrite=True, patience_seconds=0)
    before = left_behind(output)
    assert len(before) > 1
    with pytest.raises(JobError, match="exists; replace it with --overwrite"):
        run(client, source, output, restart=True)
    assert left_behind(output) == before
    listener = Listener()
    run(client, source, output, listener=listener, overwrite=True)
    assert listener.resumed == 40
    assert output.read_text() == "A\n" * 100


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(JobError, match=r"there is no folder .*/nowhere for .*/nowhere/out"):
        FileJob(tmp_path / "in", tmp_path / "nowhere" / "out", DE_EN)


def test_an_empty_file_is_no_gzip_file(client, tmp_path):
    source, output = tmp_path / "in.gz", tmp_path / "out"
    source.write_bytes(b"")
    with pytest.raises(JobError, match=r"in\.gz has no byte: it is no gzip file"):
        run(client, source, output)
    assert left_behind(output) == set()


def test_two_processes_do_not_write_the_same_output(client, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 10)

    class Intruder(Listener):
        def on_start(self, **told):
            with pytest.raises(JobError, match="another process"):
                run(client, source, output)

    run(client, source, output, listener=Intruder())
    assert output.read_text() == "A\n" * 10


def test_nobody_else_writes_an_output_that_is_being_compressed(client, tmp_path, monkeypatch):
    source, output = tmp_path / "in", tmp_path / "out.gz"
    source.write_text("a\n" * 10)
    refusals = []
    copy = shutil.copyfileobj

    def intrude(*files):
        with pytest.raises(JobError, match="another process is writing") as refused:
            run(client, source, output, restart=True, overwrite=True)
        refusals.append(refused)
        copy(*files)

    monkeypatch.setattr(shutil, "copyfileobj", intrude)
    run(client, source, output)
    assert len(refusals) == 1
    assert gzip.decompress(output.read_bytes()) == b"A\n" * 10
    assert left_behind(output) == {"out.gz"}


def test_nobody_else_writes_an_output_that_is_being_removed(client, server, tmp_path, monkeypatch):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 10)
    refusals = []
    unlink = Path.unlink

    def intrude(path, **options):
        if path.exists():
            with pytest.raises(JobError, match="another process is writing") as refused:
                run(client, source, output)
            refusals.append(refused)
        unlink(path, **options)

    server.servicer.failures.append(status_pb2.Status(code=code_pb2.NOT_FOUND))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", intrude)
        with pytest.raises(ModelNotFoundError):
            run(client, source, output)
    assert len(refusals) == len(PARTIAL)
    assert left_behind(output) == set()


def test_who_waited_for_a_file_that_became_the_output_leaves_it_alone(client, tmp_path, monkeypatch):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 10)
    flock = fcntl.flock

    def finish_before(file, how):
        (tmp_path / "out.partial").replace(output)
        output.write_text("whole\n")
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", finish_before)
    with pytest.raises(JobError, match="another process has just finished"):
        run(client, source, output, restart=True, overwrite=True)
    assert output.read_text() == "whole\n"
    assert left_behind(output) == {"out"}


class Crash(BaseException):
    """Stands for the end of the process at some moment."""


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_end_at_any_step_on_disk_loses_and_doubles_nothing(client, server, tmp_path, monkeypatch, suffix):
    """Every call that changes the disk for good crashes once, before and after it is done."""
    source = tmp_path / "in"
    source.write_text("eins\n!INTERNAL zwei\ndrei\nvier\n")
    whole = tmp_path / f"whole{suffix}"
    run(client, source, whole)
    expected = whole.read_bytes(), (tmp_path / f"whole{suffix}.errors.jsonl").read_bytes()

    real = {"fsync": os.fsync, "replace": Path.replace, "unlink": Path.unlink}
    steps = {"left": None, "after": False}

    def crashing(name):
        def call(*arguments, **options):
            if steps["left"] == 0 and not steps["after"]:
                raise Crash
            answer = real[name](*arguments, **options)
            if steps["left"] == 0:
                raise Crash
            if steps["left"] is not None:
                steps["left"] -= 1
            return answer

        return call

    monkeypatch.setattr(os, "fsync", crashing("fsync"))
    monkeypatch.setattr(Path, "replace", crashing("replace"))
    monkeypatch.setattr(Path, "unlink", crashing("unlink"))
    crashes = 0
    for after in (False, True):
        for moment in range(10_000):
            output = tmp_path / f"{after}-{moment}{suffix}"
            steps.update(left=moment, after=after)
            try:
                run(client, source, output, checkpoint_seconds=0.0)
                finished = True
            except Crash:
                finished = False
            steps.update(left=None)
            if finished:
                break
            crashes += 1
            # The very last steps come when the output has its name and the job is forgotten.
            if journal_module.Path(f"{output}.progress.json").exists() or not output.exists():
                run(client, source, output)
            assert (output.read_bytes(), Path(f"{output}.errors.jsonl").read_bytes()) == expected
    assert crashes > 50


@pytest.mark.parametrize("name", ["in.txt", "in.jsonl.gz"])
def test_killed_process_loses_and_doubles_nothing(server, tmp_path, name):
    """Real processes, really killed, at random moments; the last one comes to the end."""
    lines = [f"{'!INTERNAL ' if number % 50 == 7 else ''}zeile {number}" for number in range(600)]
    if "jsonl" in name:
        lines = [json.dumps({"text": line, "n": number}) for number, line in enumerate(lines)]
    content = "".join(f"{line}\n" for line in lines).encode()
    source = tmp_path / name
    source.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    whole, output = tmp_path / f"whole-{name}", tmp_path / f"out-{name}"
    assert translate_file(server, source, whole).wait() == 3

    server.servicer.delay_seconds = 0.004
    moments = random.Random(1)
    kills = 0
    while kills < 10 and not output.exists():
        process = translate_file(server, source, output)
        enough = server.servicer.items + moments.randrange(150)
        while server.servicer.items < enough and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        process.wait()
        kills += 1
    assert kills >= 4
    server.servicer.delay_seconds = 0
    if not output.exists() or Path(f"{output}.progress.json").exists():
        assert translate_file(server, source, output).wait() == 3
    assert output.read_bytes() == whole.read_bytes()
    errors = [tmp_path / f"{path.name}.errors.jsonl" for path in (output, whole)]
    assert errors[0].read_bytes() == errors[1].read_bytes()
    assert left_behind(output) == {output.name, errors[0].name}


@pytest.mark.parametrize(("stop", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_job_that_is_stopped_tells_how_to_go_on(server, tmp_path, stop, status):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 2000)
    server.servicer.delay_seconds = 0.002
    process = translate_file(server, source, output, stderr=subprocess.PIPE)
    while server.servicer.items < 100:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(stop)
    _, told = process.communicate()
    assert process.returncode == status
    assert "The same command goes on from there." in told.decode()
    assert "Traceback" not in told.decode()
    server.servicer.delay_seconds = 0
    assert translate_file(server, source, output).wait() == 0
    assert output.read_text() == "A\n" * 2000
    assert server.servicer.items < 2000 + 500


def test_ctrl_c_before_the_first_line_leaves_nothing_to_go_on_with(server, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n")
    server.servicer.delay_seconds = 3
    process = translate_file(server, source, output, stderr=subprocess.PIPE)
    while not server.servicer.configs:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130
    assert told == b"Interrupted before the first line was done.\n"
    assert left_behind(output) == set()


def translate_file(server, source, output, **options):
    command = [sys.executable, "-m", "dragoman", "translate-file", "--server", server.address]
    command += ["--from", "de", "--to", "en", str(source), str(output)]
    return subprocess.Popen(command, **{"stderr": subprocess.DEVNULL} | options)
