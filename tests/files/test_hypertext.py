"""HTML: what people read is translated, in attributes too; tags, code and comments stay to the byte."""

import gzip
import json

import lxml.html
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.files.documents import capitals


def test_a_page(translate, server):
    page = """<!DOCTYPE html>
<html lang="de"><head><meta charset="utf-8"><title>Titel &amp; mehr</title>
<style>p { color: red } /* nicht */</style><script>if (a < b) { s = "<p>nein</p>" }</script></head>
<body class=x><!-- kommentar --><h1 id='a' title="titel">Guten
   Morgen</h1>
<p>eins<br>zwei &lt;drei&gt;&nbsp;vier <img src="a.png" alt="bild">
<p translate="no">bleibt <b>auch</b><p>weiter
<pre>code hier</pre><ul><li>punkt<li class="notranslate">fest</ul>
<div>a &copy; b</div></body></html>
"""
    assert (
        translate("html", page)
        == """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>TITEL &amp; MEHR</title>
<style>p { color: red } /* nicht */</style><script>if (a < b) { s = "<p>nein</p>" }</script></head>
<body class=x><!-- kommentar --><h1 id='a' title="TITEL">GUTEN MORGEN</h1>
<p>EINS<br>ZWEI &lt;DREI&gt;&nbsp;VIER <img src="a.png" alt="BILD">
<p translate="no">bleibt <b>auch</b><p>WEITER
<pre>code hier</pre><ul><li>PUNKT<li class="notranslate">fest</ul>
<div>A &copy; B</div></body></html>
"""
    )
    texts = server.servicer.texts
    assert "Guten Morgen" in texts
    assert "zwei &#60;drei&#62;&#160;vier" in texts


@pytest.mark.parametrize(
    ("page", "expected", "sent"),
    [
        (
            '<p>Das ist <b>sehr <i title="i">gut</i></b>, <code>nicht wahr</code> ?</p>',
            '<p>DAS IST <b>SEHR <i title="I">GUT</i></b>, <code>nicht wahr</code> ?</p>',
            ['Das ist <g2>sehr <g4>gut</g4></g2>, <ph id="9"></ph> ?<br id="11"/>i'],
        ),
        # It is cut at tags without a partner.
        (
            "<p>eins <b>zwei</p><p>drei</b> vier <i>fünf <br> sechs</i></p>",
            "<p>EINS <b>ZWEI</p><p>DREI</b> VIER <i>FÜNF <br> SECHS</i></p>",
            ["eins", "zwei", "drei", "vier", "fünf", "sechs"],
        ),
    ],
    ids=["inline", "alone"],
)
def test_a_sentence_is_translated_with_its_inline_tags(translate, server, page, expected, sent):
    assert translate("html", page) == expected
    assert server.servicer.messages == [sent]


TEXTS = ("title", "alt", "placeholder", "aria-label")
OTHERS = ("href", "src", "class", "style", "data-title", "name", "id", "content")
NAMES = ("a", "b", "span", "p", "h1", "img", "input", "td", "button", "meta")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chance=st.randoms(use_true_random=False))
def test_attributes_that_people_read_are_translated(translate, chance):
    """Wherever their tag stands, as lxml reads the page."""
    page = ""
    for _ in range(chance.randint(1, 8)):
        name = chance.choice(NAMES)
        for each in chance.sample([*TEXTS, *OTHERS], chance.randint(1, 4)):
            value = chance.choice(["\"ja &amp; 'nein'\"", "'nur \"so\"'", "ja", '"2"'])
            name += f" {each}={value}"
        page += f"<{name}>"
        if not name.startswith(("img", "input", "meta")):
            page += chance.choice(["", "<b>wort</b>", "wort", "wort, "]) + f"</{name.split()[0]}>"
        page += chance.choice(["", " ", " wort ", "<hr>"])
    before, after = (lxml.html.fromstring(f"<div>{each}</div>") for each in (page, translate("html", page)))
    tags = zip(before.iter(), after.iter(), strict=True)
    for element, translated in tags:
        assert translated.tag == element.tag
        assert dict(translated.items()) == {
            name: value.upper() if name in TEXTS else value for name, value in element.items()
        }
    assert after.text_content() == before.text_content().upper()


def test_some_are_read_in_some_elements_alone(translate):
    page = (
        '<html lang="de-AT" xml:lang="fr"><meta name="description" content="ja">'
        '<meta name="viewport" content="ja"><meta property="og:title" content="ja">'
        '<input type="submit" value="ja"><input value="ja">'
        '<div translate="no" title="ja">ja <b title="ja">ja</b></div><!-- <img alt="ja"> -->'
        '<p lang="de">nein</p>'
    )
    expected = page.replace("de-AT", "en").replace("nein", "NEIN")
    for before in ('"description" content=', '"og:title" content=', '"submit" value='):
        expected = expected.replace(f'{before}"ja"', f'{before}"JA"')
    assert translate("html", page) == expected


def test_fields_and_drawings_have_texts(translate):
    page = "<textarea>\nja\n  <b>nein</b> oder\n</textarea><svg><title>ja</title><g><text>ja</text></g></svg>"
    expected = page.replace("<b>nein</b>", "&lt;B&gt;nein&lt;/B&gt;")
    assert translate("html", page) == capitals(expected, "ja", "nein", "oder")


@pytest.mark.parametrize(
    ("fault", "page", "expected"),
    [
        ("drops_tags", "<p>ja <b>nein</b> & oder</p><p>ja</p>", "<p>ja <b>nein</b> & oder</p><p>JA</p>"),
        (
            "crosses_tags",
            "<p>ja <b>oder <i>nein</i></b></p><p>ja <b>doch</b></p>",
            "<p>ja <b>oder <i>nein</i></b></p><p>JA <b>DOCH</b></p>",
        ),
    ],
)
def test_a_translation_whose_tags_are_lost_or_cross_fails(run, server, tmp_path, fault, page, expected):
    setattr(server.servicer, fault, True)
    source, output = tmp_path / "in.html", tmp_path / "out.html"
    source.write_text(page)
    assert run(source, output).failed == 1
    assert output.read_text() == expected
    [failure] = map(json.loads, (tmp_path / "out.html.errors.jsonl").read_text().splitlines())
    assert failure["text"] == ("ja nein & oder" if fault == "drops_tags" else "ja oder nein")
    assert failure["number"] == 1
    assert "has not the markup of its text" in failure["message"]


def test_what_is_within_something_untranslated_can_be_for_translation_again(translate):
    page = '<div translate="no">a <p translate="yes">b <code>c</code></p> d</div> e'
    assert translate("html", page) == page.replace("b ", "B ").replace(" e", " E")


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>ja <b>und", "<p>JA <b>UND"),
        ("ja </b> nein </> x", "JA </b> NEIN </> X"),
        ("<p>ja <!-- offen <p>a", "<p>JA <!-- offen <p>a"),
        ("<p>ja</p><a href='x y", "<p>JA</p><a href='x y"),
        ("<p>ja <img alt=hund", "<p>JA <img alt=hund"),
        ("<p>ja</p", "<p>JA</p"),
        ("ja\n<b\nclass=x", "JA\n<b\nclass=x"),
        ("ja <!DOCTYPE html", "JA <!DOCTYPE html"),
        ("ja <", "JA &lt;"),
        ("ja < nein", "JA &lt; NEIN"),
        ("a < b &amp c & d &#; e &unknown; f", "A &lt; B &amp; C &amp; D &amp;#; E &amp;UNKNOWN; F"),
        (f"<p>ja &#{'9' * 5000};", f"<p>JA &#{'9' * 5000};"),
        ("<script>nie zu", "<script>nie zu"),
        ("<code>nie zu <p>a", "<code>nie zu <p>a"),
        ("", ""),
        ("<p></p><br/>", "<p></p><br/>"),
        ("<div>" * 10_000 + "ja" + "</div>" * 10_000, "<div>" * 10_000 + "JA" + "</div>" * 10_000),
        ("<b>" * 10_000 + "ja" + "</i>" * 10_000, "<b>" * 10_000 + "JA" + "</i>" * 10_000),
    ],
    ids=lambda page: page[:24],
)
def test_broken_and_nested_pages_lose_nothing(translate, page, expected):
    assert translate("html", page) == expected


def test_a_page_says_its_encoding_and_keeps_it_and_can_be_compressed(translate):
    # A capital that the encoding lacks is written as a reference.
    for text, expected in (("grün", "GRÜN"), ("ÿ", "&#376;")):
        pages = [f'<meta charset="iso-8859-1"><p>{each}</p>' for each in (text, expected)]
        assert translate("html", pages[0].encode("latin-1")) == pages[1].encode("latin-1")
    assert gzip.decompress(translate("html.gz", gzip.compress(b"<p>ja</p>"))) == b"<p>JA</p>"
