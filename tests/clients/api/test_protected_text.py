"""What the caller says must stay travels with its text, by both clients and the command."""

import pytest

from dragoman import AsyncClient, InvalidRequestError, ProtectedText

DE_EN, FROM_TO = {"source": "de", "target": "en"}, ("--from", "de", "--to", "en")
TEXT = "Herr Grün mag Grün."
MARKED = ProtectedText(TEXT, [(5, 9), [14, 18]])


def _ranges(request):
    return [[(each.start, each.end) for each in ranges.ranges] for ranges in request.protected_ranges]


def test_the_ranges_of_a_text_travel_with_it_and_in_a_stream(client, server):
    client.translate(["ja", MARKED], **DE_EN)
    client.translate(["ja", TEXT], **DE_EN)
    with_ranges, without = server.servicer.requests
    assert list(with_ranges.texts) == ["ja", TEXT]
    assert _ranges(with_ranges) == [[], [(5, 9), (14, 18)]]
    assert _ranges(without) == []
    results = list(client.translate_stream(enumerate(["ja", MARKED, "nein"]), in_order=True, **DE_EN))
    assert [result.translation.text for result in results] == ["JA", TEXT.upper(), "NEIN"]
    assert server.servicer.ranges == [[], [(5, 9), (14, 18)], []]


async def test_the_asynchronous_client_sends_them_too(server):
    async with AsyncClient(server.address) as client:
        await client.translate([MARKED], **DE_EN)
    assert _ranges(server.servicer.requests[0]) == [[(5, 9), (14, 18)]]


def test_they_stay_with_their_texts_where_a_list_travels_in_several_requests(client, server):
    texts = [ProtectedText("ja", [(0, 1)]) if number % 50 == 0 else "nein" for number in range(600)]
    client.translate(texts, **DE_EN)
    assert len(server.servicer.requests) == 3
    sent = [
        (text, ranges)
        for request in server.servicer.requests
        for text, ranges in zip(request.texts, _ranges(request), strict=True)
    ]
    assert sorted(sent) == sorted((text, [(0, 1)] if text == "ja" else []) for text in texts)


@pytest.mark.parametrize(
    ("ranges", "error", "told"),
    [
        ([(3, 3)], InvalidRequestError, "has 3 to 3, which is no range of a text of 5 code points"),
        ([(-1, 2)], InvalidRequestError, "has -1 to 2"),
        ([(2, 6)], InvalidRequestError, "has 2 to 6"),
        ([3], TypeError, "holds 3, not a pair"),
        ([(0, 1.5)], TypeError, "not a pair of integers"),
        (["ab"], TypeError, "holds 'ab', not a pair"),
    ],
    ids=["empty", "negative", "beyond", "number", "float", "text"],
)
def test_what_is_no_range_of_the_text_is_refused(ranges, error, told):
    with pytest.raises(error, match=told):
        ProtectedText("hallo", ranges)


def test_the_command_takes_ranges_of_its_text_words_and_patterns(server, run):
    asked = ("--keep-range", "5:9", "--keep-range", "14:18", "--keep", "mag", "--keep-pattern", "[A-Z]+")
    assert run("translate", *FROM_TO, *asked, TEXT).stdout == f"{TEXT.upper()}\n"
    [request] = server.servicer.requests
    assert _ranges(request) == [[(5, 9), (14, 18)]]
    assert list(request.protection.do_not_translate) == ["mag"]
    assert list(request.protection.patterns) == ["[A-Z]+"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--keep-range", "5-9", TEXT), "'5-9' is no START:END, such as 5:9"),
        (("--keep-range", "5:9", TEXT, "ja"), "--keep-range is of one TEXT, and there are 2"),
        (("--keep-range", "5:9"), "--keep-range is of one TEXT, and there are 0"),
        (("--keep-range", "5:99", TEXT), "has 5 to 99, which is no range of a text of 19 code points"),
    ],
    ids=["dash", "two texts", "standard input", "beyond"],
)
def test_the_command_refuses_ranges_of_no_text(run, arguments, told):
    ran = run("translate", *FROM_TO, *arguments)
    assert ran.exit_code in (1, 2)
    assert told in " ".join(ran.output.split())
