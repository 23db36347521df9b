"""Spans that are protected without being asked for: URLs, placeholders and so on.

No pattern begins within a run that it could have begun at, and none takes more than a time in proportion to
the text.
"""

import re
from collections.abc import Iterator

from dragoman_bundle.languages import HANGUL, UNSPACED_CHARACTERS

from dragoman_server.text.protection.emoji import EMOJI
from dragoman_server.text.protection.protected import Protected, SpanKind

_TRIGGER = re.compile(
    r"[/\\@{%$:`#~<\u00a9\u00ae\u203c\u2049\u20e3\u2122\u2139\u2194-\u2bff\u3030\u303d\u3297\u3299"
    r"\U0001f000-\U0001faff]|\w\.\w|[A-Za-z][/_-]?\d|\d[/_-]?[A-Za-z]|[¹²³⁰-⁹₀-₉]"
)
_UNSPACED = re.compile(f"[{UNSPACED_CHARACTERS}]")
_SYLLABLE = re.compile(f"[{HANGUL}]")
_HANGUL = "\ufffb"
"""Stands for a letter of Korean, which touches what is protected from behind: "https://example.com입니다"."""
_LETTER = f"{_HANGUL}\ufffc"
"""Within brackets: that, and what stands for a letter that touches both ends: "看https://example.com吧"."""
_NAME = rf"(?=\w*[{_LETTER}])[\w{_LETTER}]++"
_NAME_ENDS = r"(?![^\s.,;:!?)\]}\"'…。，、；：！？）」』】》”’])"
_OF_STEM = rf"(?:[\w\-]|{_HANGUL}(?![A-Za-z]))"
_STEM_BEGINS = rf"(?:(?<!{_HANGUL})|(?=[A-Za-z]))"
"""Of "보고서.pdf" all is the name, of "파일a.pdf" what is behind the word."""
_ENDS = r"\s<>\"„“”«»，。、；：！？（）「」『』【】《》"
_SCHEME = r"(?:[a-zA-Z][a-zA-Z0-9+.\-]{1,20}://|(?:mailto|tel|urn|data|javascript):)"
_LAST_LABEL = rf"(?<=[{_LETTER}]\.)[{_LETTER}]{{1,8}}(?![\w{_LETTER}])"
_HOST = rf"(?:[^{_ENDS}{_LETTER}/?#]|[{_LETTER}](?=[\w\-{_LETTER}]{{0,40}}[.@][\w{_LETTER}])|{_LAST_LABEL})++"
_LABEL = rf"(?:[\w\-]|[{_LETTER}](?=[\w\-{_LETTER}]{{0,40}}\.[\w{_LETTER}])|{_LAST_LABEL})++"
_REST = rf"(?:[/?#][^{_ENDS}]*+)?"
_IN_PATH = rf"(?:[\w.@+\-]|[{_LETTER}](?=[{_LETTER}]{{0,40}}[/.]))"
_DOMAINS = "com|org|net|edu|gov|info|io|dev|app|eu|de|ch|uk|fr|nl|pl"
_SUFFIXES = (
    "txt|md|pdf|docx?|xlsx?|pptx?|odt|csv|tsv|jsonl?|ya?ml|toml|ini|conf|cfg|xml|html?|css|jsx?|tsx?|py|rs|go|java|"
    "cpp|hpp|sh|bat|exe|dll|so|zip|tar|gz|png|jpe?g|gif|svg|mp3|mp4|log|lock|sql|db|po|env"
)
_ORDINAL = r"\d++(?:E?R?[NS]?|ST|ND|RD|TH|STE[NRS]?|TE[NRS]?|[EÈ]?ME)(?!\w)"
_GROUP = r"(?:\d|[A-Z]{1,5}(?![A-Z]))++"
_GROUPS = rf"{_GROUP}(?:(?:[/_-]|\.(?=\d)){_GROUP})*+"
_PATTERNS = {
    SpanKind.CODE: r"```[^`]++```|``(?!`)(?:[^`]++|`(?!`))++``|`[^`\n]++`",
    SpanKind.PLACEHOLDER: "|".join(
        (
            r"\$?\{\{\{?[^{}\n]{1,200}\}\}\}?",
            r"\{%[^{}\n]{1,200}%\}",
            # In a text that is told to have markup the tags have been taken out.
            r"</?[A-Za-z_][^<>\n]{0,200}>|<!--|-->",
            rf"[$#%@]?\{{(?:[\w.\-\[\]{_LETTER}]+(?:[:!|][^{{}}\n]{{0,100}})?)?\}}",
            # In "50 % der" and "100%ig" it is a percentage.
            rf"(?<![\w%])%\([\w{_LETTER}]+\)[-+#0]?\d*(?:\.\d+)?[a-zA-Z]",
            r"(?<![\w%])%(?:\d+\$)?[-+#0]?\d*(?:\.\d+)?(?:hh|h|ll|l|L|z|j|t)?[sdiuoxXfFeEgGcpn@](?!\w)",
            r"(?<![\w%])%\d+\$[-+#0]?\d*(?:\.\d+)?[a-zA-Z@]",
            r"(?<![\w%])%L?\d{1,2}(?![\w%])",
            r"(?<![\w%])%[A-Za-z_]\w+%",
            r"(?<![\w$])\$[A-Za-z_]\w*+",
            r"(?<![\w:/])::?[a-z_]\w++:?(?!\w)",
        )
    ),
    SpanKind.EMAIL: (
        rf"(?<![\w.+\-])(?:[\w.+\-]{{1,64}}|[\w.+\-{_LETTER}]{{1,64}}(?<=[{_LETTER}]))@{_LABEL}(?:\.{_LABEL})+"
    ),
    SpanKind.URL: "|".join(
        (
            # A host that begins with such a letter ends with white space.
            rf"(?<![\w+.\-]){_SCHEME}(?:{_HOST}{_REST}|[/?#{_LETTER}][^{_ENDS}]*+)",
            rf"(?<![\w.\-])www\.{_HOST}{_REST}",
            rf"(?<![\w.\-]){_STEM_BEGINS}(?:{_OF_STEM}{{1,63}}\.){{1,4}}(?:{_DOMAINS})(?![\w\-])(?::\d{{1,5}})?{_REST}",
        )
    ),
    SpanKind.PATH: "|".join(
        (
            r"(?<!\w)(?:[A-Za-z]:\\|\\\\)[^\s<>\"|*?]++",
            rf"(?<![\w/.])(?:~|\.{{1,2}})/(?:{_IN_PATH}|/)*+",
            # Of "월/화/수/목" none, of "看/etc/hosts" what is behind the word.
            rf"(?<![\w/.>])(?:(?<![{_LETTER}])|(?=/[\w.@+\-]))(?:/{_IN_PATH}+){{2,}}+/?",
            r"(?<![\w/.])/[\w\-]+\.\w{1,8}(?!\w)",
            rf"(?<![\w./\-]){_STEM_BEGINS}(?:{_OF_STEM}+[./])+(?:{_SUFFIXES})(?![\w/])",
        )
    ),
    SpanKind.HASHTAG: rf"(?<![\w&/#])#(?:{_NAME}(?:#|{_NAME_ENDS})|\w*[^\W\d_]\w*)",
    SpanKind.MENTION: rf"(?<![\w@./])@(?:{_NAME}{_NAME_ENDS}|\w[\w.\-]*(?:@[\w\-]+(?:\.[\w\-]+)+)?)",
    # With the numbers of footnotes, which stand beside a word as well.
    SpanKind.EMOJI: rf"{EMOJI}|(?<=[^\W\d_]|[{_LETTER}])[²³¹⁰-⁹₀-₉]+",
    SpanKind.REFERENCE: "|".join(
        (
            # IBAN, written in fours.
            r"(?<!\w)[A-Z]{2}\d{2}(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?(?!\w)",
            r"(?<![\w-])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?!\w)",
            r"(?<![\w-])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}(?!\w)",
            # Of products and rooms: "AB-4711/X", "12A", "COVID-19". Not "20ER" and "3-ZIMMER-WOHNUNG".
            rf"(?<![\w/.,-])(?!{_ORDINAL})(?=[A-Z/_-]*\d)(?=[\d./_-]*[A-Z]){_GROUPS}(?!\w|[/_-]\w)",
            r"(?<![\w/.,-])(?:0[xX][0-9A-Fa-f]+|\d+(?:\.\d+)?[eE][+-]?\d+)(?!\w)",
            # "5a" and "312g", but for decades, ordinals and hours: "90s", "2e", "17h".
            r"(?<![\w/.,-])\d{1,4}[a-dfgi-rt-z](?![\w-])",
            # Units and formulas: "m²", "CO₂".
            r"(?<!\w)(?:[A-Za-zµ°]{1,3}[²³⁰-⁹]|(?:[A-Z][a-z]?[₀-₉]*+)++(?<=[₀-₉])(?:[A-Z][a-z]?[₀-₉]*+)*+)(?!\w)",
        )
    ),
}
_ARGUMENT = (
    rf"\{{\s{{0,10}}[\w.{_LETTER}]+\s{{0,10}},\s{{0,10}}"
    r"(?:plural|selectordinal|select|choice|number|date|time|ordinal|duration|spellout)\b"
)
_ANY = re.compile(
    "|".join(
        (
            f"(?P<argument>{_ARGUMENT})",
            *(f"(?P<{kind.value}>{pattern})" for kind, pattern in _PATTERNS.items()),
        )
    )
)
_BRACE = re.compile(r"[{}]")
_TRAILING = frozenset(".,;:!?'\"…*_。，")
_TRIMMED = frozenset((SpanKind.URL, SpanKind.EMAIL, SpanKind.PATH, SpanKind.MENTION))
_BRACKETS = {")": "(", "]": "[", "}": "{"}


def certain_spans(text: str) -> Iterator[Protected]:
    """The spans of a text that match a pattern, in order and without overlaps."""
    if not _TRIGGER.search(text):
        return
    position = 0
    ends: dict[int, int] | None = None
    searched = _SYLLABLE.sub(_HANGUL, _UNSPACED.sub("\ufffc", text))
    while (found := _ANY.search(searched, position)) is not None:
        start, end = found.span()
        name = found.lastgroup
        assert name is not None
        if name == "argument":
            kind = SpanKind.PLACEHOLDER
            ends = _ends_of_braces(text) if ends is None else ends
            if start not in ends:
                position = start + 1
                continue
            end = ends[start]
        else:
            kind = SpanKind(name)
            if kind in _TRIMMED:
                end = _without_punctuation(text, start, end)
        yield Protected(span=(start, end), kind=kind)
        position = max(end, start + 1)


def _ends_of_braces(text: str) -> dict[int, int]:
    """Where each brace that opens something has it end, of those that are closed."""
    opened: list[int] = []
    ends = {}
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            ends[opened.pop()] = brace.end()
    return ends


def _without_punctuation(text: str, start: int, end: int) -> int:
    """Where it ends without the sentence's own marks, and without a bracket that was opened before it."""
    while end > start + 1:
        last = text[end - 1]
        opener = _BRACKETS.get(last)
        if opener is not None:
            if text.count(opener, start, end) >= text.count(last, start, end):
                break
        elif last not in _TRAILING:
            break
        end -= 1
    return end
