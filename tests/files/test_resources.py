"""Resources of applications: values are translated, and all else stays to the byte."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from fluent.syntax import FluentParser, ast
from tests.files.documents import capitals, units_of

from dragoman_files.document import Segment
from dragoman_files.format import UnitError
from dragoman_files.resources import without_accelerators

REAL_FILES = Path(__file__).parents[3] / "shared" / "data" / "formats"

RESX = (
    '\ufeff<?xml version="1.0" encoding="utf-8"?>\r\n<root>\r\n  <resheader name="version"><value>zwei'
    '</value></resheader>\r\n  <data name="Titel" xml:space="preserve">\r\n    '
    "<value>Der Hund &amp; die\r\nKatze {0}</value>\r\n    "
    '<comment>ein Hund</comment>\r\n  </data>\r\n  <data name="a.Font" type="System.Drawing">'
    '<value>Arial</value></data>\r\n  <data name=">>a.Name"><value>a</value></data>\r\n</root>\r\n'
)


def test_values_of_dotnet_are_translated_line_by_line(translate, server):
    expected = RESX.replace("Der Hund &amp; die\r\nKatze", "DER HUND &amp; DIE\r\nKATZE")
    assert translate("resx", RESX) == expected
    assert [text.count("<br ") for text in server.servicer.texts if text] == [1]


QT_HEAD = '<TS version="2.1" language="en"><message>'


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("resx", '<root><data name="a"><value>{}</value></data></root>'),
        ("ts", f"{QT_HEAD}<source>&amp;Datei</source><translation>{{}}</translation></message></TS>"),
    ],
)
def test_an_accelerator_is_put_back(translate, server, name, given):
    text = "&amp;Datei" if name == "resx" else ""
    assert translate(name, given.format(text)) == given.format("&amp;DATEI")
    assert [text for text in server.servicer.texts if text] == ["Datei"]


@pytest.mark.parametrize(
    "text",
    ["Hallo {_name}", "%(_x)s fertig", "Siehe $_x", "Noch %%__author__54%%", "Route :_item", "`_x` auf"],
)
def test_a_sign_of_a_name_is_no_accelerator(text):
    segment = Segment(start=0, end=len(text), text=text, write=str)
    assert list(without_accelerators([segment], is_html=False)) == [segment]


ANDROID = r"""<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <!-- Der Hund -->
    <string name="a">Der <b>Hund</b>\'s \"Haus\" \u00fc</string>
    <string name="n" translatable="false">nein</string>
    <string name="r">@string/a</string>
    <string name="q">"  ja,
  nein "</string>
    <string name="s">\u0020zwei\nZeilen</string>
    <string name="x">an <xliff:g id="wen">%s</xliff:g> &amp; \@du</string>
    <string-array name="l"><item>eins</item><item>@string/a</item></string-array>
    <plurals name="p"><item quantity="one">%d Hund</item></plurals>
</resources>
"""


def test_strings_of_android_are_translated_and_their_escapes_stay(translate):
    expected = ANDROID.replace(r"Der <b>Hund</b>\'s \"Haus\" \u00fc", r"DER <b>HUND</b>\'S \"HAUS\" Ü")
    expected = expected.replace("ja,\n  nein", "JA, NEIN").replace(r"zwei\nZeilen", r"ZWEI\nZEILEN")
    assert translate("strings.xml", ANDROID) == capitals(expected, ">an <", "@du", ">eins<", "%d Hund")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("resx", "<root><data name='a'><value><![CDATA[Fisch & Brot ]]></value></data></root>"),
        ("strings.xml", "<resources><string name='a'><![CDATA[Fisch & Brot ]]></string></resources>"),
    ],
)
def test_what_is_cdata_has_no_references(translate, name, given):
    assert translate(name, given) == given.replace("Fisch & Brot", "FISCH & BROT")


def test_a_translation_for_android_reads_as_it_is():
    given = b"<resources><string name='a'>Hund</string></resources>"
    [unit] = units_of("android", given)
    expected = given.replace(b"Hund", rb"\?What\'s &lt;that&gt; \\ @")
    assert unit.write("?What's &lt;that&gt; \\ @", False) == expected


APPLE = (
    '/* Der "Hund" = "a"; */\n"titel" = "Der \\"Hund\\"\\nschläft %@";\n'
    '// nein\n  key.b="gr\\U00fcn" ;\n"n" = "5";\n'
)


def test_values_of_apple_are_translated_and_still_read_as_a_list(translate):
    expected = APPLE.replace("gr\\U00fcn", "GRÜN").replace("\\nschläft", "\\nSCHLÄFT")
    assert translate("strings", APPLE) == expected.replace('Der \\"Hund\\"', 'DER \\"HUND\\"')


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        *(
            ("in.strings", f'"x" = "y";\n{content}\n', r"in\.strings: what follows line 1 is no pair")
            for content in ('"a" = "b"', '"a" "b";', "hallo", '"a" = "b;\n')
        ),
        ("in.ftl", "# ja\nhallo welt\n", r"in\.ftl: no Fluent: what begins at line 2 is no message"),
        # TypeScript is no catalogue of Qt.
        ("in.ts", "const a = 'ja';\n", "no well-formed XML"),
        ("in.yaml", "a: [b\n", r"in\.yaml: no YAML: .*line"),
        ("in.yaml", "? [a, b]\n: c\n", "line 1 has a key that is no text"),
        ("in.yaml", "[" * 5000, "nested deeper than 100"),
        ("in.yaml", "a: b: c\n", "no YAML"),
    ],
)
def test_what_is_no_such_file_is_refused(refuse, name, content, told):
    refuse(name, content, told)


def test_messages_of_a_bundle_are_translated_and_its_locale_is_the_targets(translate):
    given = (
        '{\n  "@@locale": "de",\n  "titel": "Der Hund {name}",\n  "@titel": {"description": "ein Hund",\n'
        '   "placeholders": {"name": {"type": "String"}}},\n  "n": "{n, plural, =1{ein} other{x}}"\n}\n'
    )
    expected = capitals(given, "Der Hund {name}", "{n, plural, =1{ein} other{x}}")
    assert translate("arb", given) == expected.replace('"@@locale": "de"', '"@@locale": "en"')


FTL = """# Der Hund
-marke = Hund

titel = Der { -marke } ist da
    .title = Ein Hund
    .accesskey = D
anzahl =
    { $n ->
        [one] ein Hund
       *[other] { $n } Hunde
    } und
    mehr
zahl = { $n }
"""


def test_values_of_fluent_are_translated_and_still_read_as_its_own(translate):
    texts = ("Der { -marke } ist da", "Ein Hund", "[one] ein Hund", "{ $n } Hunde", "[other]", "{ $n ->")
    assert translate("ftl", FTL) == capitals(FTL, *texts, "} und\n    mehr")


def test_lines_of_fluent_keep_their_ends_and_their_indentation(translate):
    given = "a = ja\r\n  und\r\n\r\n    nein\r\nb =\r\n\tkaputt\r\n"
    assert translate("ftl", given) == capitals(given, "ja", "und", "nein")


@pytest.mark.parametrize(
    ("text", "translation"), [("a =\n    ja", "[x] nein"), ("a = ja", "{ nein"), ("a =\n    ja", ".b = nein")]
)
def test_a_translation_is_read_as_the_text_of_its_message(text, translation):
    [unit] = units_of("ftl", text.encode())
    try:
        written = unit.write(translation, False).decode()
    except UnitError:
        return
    [message] = FluentParser().parse(written + "\n").body
    parts = message.value.elements
    texts = [each if isinstance(each, ast.TextElement) else each.expression for each in parts]
    assert "".join(each.value for each in texts) == translation


TS = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n<TS version="2.1">\n<context>\n    '
    "<name>Fenster</name>\n"
    '    <message>\n        <location filename="a.cpp" line="3"/>\n        <source>Der &amp;Hund</source>\n'
    '        <translation type="unfinished"></translation>\n    </message>\n    <message numerus="yes">\n'
    '        <source>%n Hund(e)</source>\n        <translation type="unfinished">\n'
    "            <numerusform></numerusform>\n            <numerusform/>\n"
    "        </translation>\n    </message>\n"
    "    <message><source>ja</source><translation>yes</translation></message>\n"
    '    <message><source>nein</source><translation type="unfinished">noo</translation></message>\n'
    "</context>\n</TS>\n"
)


def test_messages_of_qt_without_a_translation_get_one(translate):
    assert translate("ts", TS) == (
        TS.replace('version="2.1"', 'version="2.1" language="en"')
        .replace('<translation type="unfinished"></tr', "<translation>DER &amp;HUND</tr")
        .replace('<translation type="unfinished">\n', "<translation>\n")
        .replace("<numerusform></numerusform>", "<numerusform>%N HUND(E)</numerusform>")
        .replace("<numerusform/>", "<numerusform>%N HUND(E)</numerusform>")
    )


YAML = (
    "# Der Hund\r\nde:  # Kommentar\r\n  plain: Der Hund\r\n  'single': 'Der ''Hund'''\r\n"
    '  double: "Der\\nHund"\r\n'
    "  block: |-\r\n    der Hund\r\n\r\n    schläft\r\n  folded: >\r\n    der\r\n    Hund\r\n\r\n"
    "  liste: [ein Hund, &a zwei, *a, 3]\r\n"
    "  ja: yes\r\n  zahl: 1.50\r\n  datum: 2020-01-02\r\n  leer:\r\n  tief:\r\n  - eins\r\n  - zwei: drei\r\n"
)


def upper(value):
    if isinstance(value, dict):
        return {key: upper(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(upper, value))
    return value.upper() if isinstance(value, str) else value


def test_strings_of_yaml_are_translated_in_their_style(translate):
    written = translate("yaml", YAML)
    assert yaml.safe_load(written) == upper(yaml.safe_load(YAML))
    assert written == (
        "# Der Hund\r\nde:  # Kommentar\r\n  plain: DER HUND\r\n  'single': 'DER ''HUND'''\r\n"
        '  double: "DER\\nHUND"\r\n  block: |-\r\n    DER HUND\r\n\r\n    SCHLÄFT\r\n'
        "  folded: |\r\n    DER HUND\r\n\r\n"
        "  liste: [EIN HUND, &a ZWEI, *a, 3]\r\n  ja: yes\r\n  zahl: 1.50\r\n  datum: 2020-01-02\r\n"
        "  leer:\r\n  tief:\r\n  - EINS\r\n  - zwei: DREI\r\n"
    )


def test_a_key_of_yaml_chooses_what_is_translated(translate):
    given = "text: [ja, {text: x, id: y}]\nid: z\n"
    assert translate("yaml", given, keys=("text",)) == "text: [JA, {text: X, id: y}]\nid: z\n"


@pytest.mark.parametrize(
    "text", ["a: b", "# c", "- d", "'e", "f #g", "{h}", "x, y", "null", "@i", "%j", "k: ", "l\nm"]
)
@pytest.mark.parametrize("style", ["{}", "'{}'", '"{}"', "|\n    {}", ">-\n    {}"])
def test_whatever_a_translation_is_it_is_the_value(style, text):
    value = style.format("hund")
    given = f"a:\n  b: {value}\n" + ("" if "\n" in style else f"  c: [{value}]\n")
    written = b"".join(unit.write(text, {}) for unit in units_of("yaml", given.encode()))
    found = yaml.safe_load(written)["a"]
    assert found["b"].strip() == text.strip()
    assert "\n" in style or found["c"] == [text]


@pytest.mark.skipif(not REAL_FILES.is_dir(), reason="no real files here")
def test_real_resources_differ_in_their_values_alone(translate):
    given = (REAL_FILES / "terminal.en-US.resw").read_bytes()
    written = translate("resw", given)
    before, after = map(ElementTree.fromstring, (given, written))
    values = [[value.text for value in root.iterfind("data/value")] for root in (before, after)]
    assert [value.upper() for value in values[0]] == [value.upper() for value in values[1]]
    assert values[0] != values[1]
    pattern = re.compile(rb"(?<=<value>)[^<]*")
    assert pattern.sub(b"", given) == pattern.sub(b"", written)
    given = (REAL_FILES / "messaging.strings.xml").read_bytes()
    written = translate("strings.xml", given)
    assert re.sub(rb">[^<]*<", b"><", given) == re.sub(rb">[^<]*<", b"><", written)
    assert re.findall(rb"%\d*\$?[sd]", given.lower()) == re.findall(rb"%\d*\$?[sd]", written.lower())
    messages = (REAL_FILES / "id-core.en.yaml").read_text()
    assert upper(yaml.safe_load(translate("yaml", messages))) == upper(yaml.safe_load(messages))
