"""Markdown: prose is translated; code, targets of links, tables' lines and front matter stay."""

import re
from pathlib import Path

import pytest

REAL_FILES = Path(__file__).parents[3] / "shared" / "data" / "formats"


def test_a_document(translate):
    given = """---
title: bleibt
---

# Titel {#anker}

Ein Absatz, der
umbrochen ist, mit *betonung*, `code` und [einem link](http://a.b/c "titel").\r
Mehr <b>davon</b> ![bild hier](x.png)

> zitat
> weiter

- [x] erledigt
- punkt
  1. tiefer

| kopf | zahl |
|------|-----:|
| a \\| b | 1  |
| zelle | `x` |

```python
code = "hier"
```

    eingerückt

Unter
-----

<div align="center">
mitte
</div>

[ziel]: http://a.b "titel"
"""
    assert (
        translate("md", given)
        == """---
title: bleibt
---

# TITEL {#anker}

EIN ABSATZ, DER UMBROCHEN IST, MIT *BETONUNG*, `code` UND [EINEM LINK](http://a.b/c "TITEL"). MEHR <b>DAVON</b> ![BILD HIER](x.png)

> ZITAT WEITER

- [x] ERLEDIGT
- PUNKT
  1. TIEFER

| KOPF | ZAHL |
|------|-----:|
| A \\| B | 1  |
| ZELLE | `x` |

```python
code = "hier"
```

    eingerückt

UNTER
-----

<div align="center">
MITTE
</div>

[ziel]: http://a.b "titel"
"""  # noqa: E501
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("[text] und [der `rest`]\n", "[TEXT][text] UND [DER `rest`][der `rest`]\n"),
        ("[text][] ![text]\n", "[TEXT][text] ![TEXT][text]\n"),
        ("[anders][text]\n", "[ANDERS][text]\n"),
    ],
    ids=["shortcut", "collapsed", "full"],
)
def test_links_by_their_text_go_on_to_where_they_went(translate, given, expected):
    definitions = "\n[text]: a\n[der `rest`]: b\n"
    assert translate("md", given + definitions) == expected + definitions


@pytest.mark.parametrize(
    "element",
    [
        *("[][name]", "[](http://a.b)", "[]()", "![][name]", "![](c.png)", "[![](c.png)][name]"),
        *("[ ][name]", "<i></i>"),
    ],
)
@pytest.mark.parametrize(
    "frame", ["{}\n", "{} ja\n", "ja {} nein\n", "- ja {}\n", "ja **{}** nein\n", "ja{}nein\n"]
)
def test_empty_elements_stay_where_they_stood(translate, frame, element):
    definition = "\n[name]: http://a.b\n"
    given = frame.format(element)
    expected = frame.replace("ja", "JA").replace("nein", "NEIN").format(element)
    assert translate("md", given + definition) == expected + definition


def test_a_failed_text_footnotes_and_autolinks_stay(translate):
    assert translate("md", "ja\n\n!INTERNAL a\nb\n\n- nein\n") == "JA\n\n!INTERNAL a\nb\n\n- NEIN\n"
    given = "siehe[^note] <http://a.b/c>.\n\n[^note]: die note hier\n"
    assert translate("md", given) == "SIEHE[^note] <http://a.b/c>.\n\n[^note]: DIE NOTE HIER\n"


PAGES = {
    "alert": "> [!NOTE]\n> der hund.\n\n> [!TIP]- mehr dazu\n> ja",
    "admonition": "::: tip guten tag\n\nder hund.\n\n:::\n",
    "tight": ":::note\nder *hund*.\n:::\n\n:::info[guten tag]\nja\n:::",
    "mkdocs": '!!! note "achtung"\n    der hund.\n\n??? tip\n    ja.\n',
    "table": "| name | wert |\n|---|---|\n| a\\|b | `x\\|y` kind |\n| ja | c \\| d |\n",
    "footnote": "ich mag brot.[^1]\n\n[^1]: ja.\n[^b-c]: nein,\n    doch.\n\n[x]: nein\n",
    "titles": "das [haus](u \"der hund\") und [ja](<a b> 'eine \\'katze\\'').\n\n"
    '![bild](x.png "maus")\n\n[nur](u "ein")',
    "quotation": 'er sagte "ja"\nund ging [so]\nweiter',
}
KEPT = r"\[!\w+\]|::: ?\w+|\?\?\? tip|!!! note|\(u |\(<a b> |x\.png|`[^`]+`|\[\^[\w-]+\]|^\[x\]: nein"


@pytest.mark.parametrize("name", PAGES)
def test_what_others_add_to_markdown_stays(translate, name):
    page = PAGES[name]
    found = translate("md", page).replace("\\'", "'").replace("\\[", "[").replace("\\]", "]")
    words = re.compile(rf"({KEPT})|[^\W\d_]+", re.MULTILINE)
    expected = words.sub(lambda word: word[0] if word[1] else word[0].upper(), page).replace("\\'", "'")
    assert " ".join(found.split()) == " ".join(expected.split())
    assert found.count("\n\n") == page.count("\n\n")


@pytest.mark.parametrize(
    "content", ["> " * 10_000 + "a\n", "[" * 10_000 + "a\n", "*a " * 3_000 + "\n", "`" * 9_999]
)
def test_deep_nesting_is_no_matter(translate, content):
    assert translate("md", content).lower() == content


@pytest.mark.skipif(not REAL_FILES.is_dir(), reason="no real files here")
@pytest.mark.parametrize("name", ["react-thinking-in-react.fr.md", "tldr-tar.md", "SOURCE.md"])
def test_real_documents_keep_their_structure(run, tmp_path, name):
    from markdown_it import MarkdownIt

    def structure(text):
        markdown = MarkdownIt("commonmark").enable("table")
        for token in markdown.parse(text):
            for child in token.children or []:
                if child.type not in ("text", "text_special", "softbreak", "image"):
                    yield child.type, child.content, child.attrs
            yield token.type, token.info, token.content if token.type == "fence" else ""

    source, output = REAL_FILES / name, tmp_path / "out.md"
    run(source, output)
    before, after = source.read_text(), output.read_text()
    if name.startswith("react"):
        # Without the front matter, which is no Markdown.
        assert after.startswith("---\ntitle: Penser en React\n---\n")
        before, after = before.split("---\n", 2)[2], after.split("---\n", 2)[2]
    assert list(structure(after)) == list(structure(before))
    assert after != before
