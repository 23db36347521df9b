"""HTML: what readers read is translated; tags, attributes, code and comments stay to the byte."""

import gzip
import json

import pytest


def test_a_page(translate, server):
    given = """<!DOCTYPE html>
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
        translate("html", given)
        == """<!DOCTYPE html>
<html lang="de"><head><meta charset="utf-8"><title>TITEL &amp; MEHR</title>
<style>p { color: red } /* nicht */</style><script>if (a < b) { s = "<p>nein</p>" }</script></head>
<body class=x><!-- kommentar --><h1 id='a' title="titel">GUTEN MORGEN</h1>
<p>EINS<br>ZWEI &lt;DREI&gt;&nbsp;VIER <img src="a.png" alt="bild">
<p translate="no">bleibt <b>auch</b><p>WEITER
<pre>code hier</pre><ul><li>PUNKT<li class="notranslate">fest</ul>
<div>A &copy; B</div></body></html>
"""
    )
    texts = [text for message in server.servicer.messages for text in message]
    assert "Guten Morgen" in texts
    assert "zwei &#60;drei&#62;&#160;vier" in texts


def test_a_sentence_is_translated_with_its_inline_tags(translate, server):
    given = '<p>Das ist <b>sehr <i title="i">gut</i></b>, <code>nicht wahr</code> ?</p>'
    assert translate("html", given) == (
        '<p>DAS IST <b>SEHR <i title="i">GUT</i></b>, <code>nicht wahr</code> ?</p>'
    )
    assert server.servicer.messages == [
        ['Das ist <g2>sehr <g4>gut</g4></g2>, <ph id="9"></ph> ?'],
    ]


def test_a_sentence_is_cut_at_tags_without_a_partner(translate, server):
    given = "<p>eins <b>zwei</p><p>drei</b> vier <i>fünf <br> sechs</i></p>"
    assert translate("html", given) == "<p>EINS <b>ZWEI</p><p>DREI</b> VIER <i>FÜNF <br> SECHS</i></p>"
    [texts] = server.servicer.messages
    assert texts == ["eins", "zwei", "drei", "vier", "fünf", "sechs"]


def test_a_translation_that_lost_its_tags_is_a_failure_and_its_text_stays(run, server, tmp_path):
    server.servicer.drops_tags = True
    source, output = tmp_path / "in.html", tmp_path / "out.html"
    source.write_text("<p>ja <b>nein</b> & oder</p><p>ja</p>")
    assert run(source, output).failed == 1
    assert output.read_text() == "<p>ja <b>nein</b> & oder</p><p>JA</p>"
    [failure] = map(json.loads, (tmp_path / "out.html.errors.jsonl").read_text().splitlines())
    assert (failure["text"], failure["number"]) == ("ja nein & oder", 1)
    assert "has not the markup of its text" in failure["message"]


def test_a_translation_whose_tags_cross_is_a_failure(run, server, tmp_path):
    server.servicer.crosses_tags = True
    source, output = tmp_path / "in.html", tmp_path / "out.html"
    source.write_text("<p>ja <b>oder <i>nein</i></b></p><p>ja <b>doch</b></p>")
    assert run(source, output).failed == 1
    assert output.read_text() == "<p>ja <b>oder <i>nein</i></b></p><p>JA <b>DOCH</b></p>"


def test_what_is_within_something_untranslated_can_be_for_translation_again(translate):
    given = '<div translate="no">a <p translate="yes">b <code>c</code></p> d</div> e'
    assert translate("html", given) == given.replace("b ", "B ").replace(" e", " E")


@pytest.mark.parametrize(
    ("given", "expected"),
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
        ("<script>nie zu", "<script>nie zu"),
        ("<code>nie zu <p>a", "<code>nie zu <p>a"),
        ("", ""),
        ("<p></p><br/>", "<p></p><br/>"),
    ],
    ids=[
        "open",
        "stray",
        "comment",
        "attribute",
        "empty tag",
        "end tag",
        "lines",
        "declaration",
        "sign",
        "less",
        "references",
        "script",
        "code",
        "empty",
        "tags",
    ],
)
def test_broken_pages_lose_nothing(translate, given, expected):
    assert translate("html", given) == expected


def test_ten_thousand_nested_tags_are_no_matter(translate):
    given = "<div>" * 10_000 + "ja" + "</div>" * 10_000
    assert translate("html", given) == given.replace("ja", "JA")
    given = "<b>" * 10_000 + "ja" + "</i>" * 10_000
    assert translate("html", given) == given.replace("ja", "JA")


def test_a_page_says_its_encoding_and_keeps_it(translate):
    given = '<meta charset="iso-8859-1"><p>grün</p>'.encode("latin-1")
    assert translate("html", given) == '<meta charset="iso-8859-1"><p>GRÜN</p>'.encode("latin-1")
    # A capital that the encoding lacks is written as a reference.
    given = '<meta charset="iso-8859-1"><p>ÿ</p>'.encode("latin-1")
    assert translate("html", given) == b'<meta charset="iso-8859-1"><p>&#376;</p>'


def test_a_page_can_be_compressed(translate):
    assert gzip.decompress(translate("html.gz", gzip.compress(b"<p>ja</p>"))) == b"<p>JA</p>"


def test_a_reference_to_a_number_of_any_length_is_no_character(translate):
    assert translate("html", f"<p>ja &#{'9' * 5000};") == f"<p>JA &#{'9' * 5000};"
