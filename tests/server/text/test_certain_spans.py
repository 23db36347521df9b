"""What is protected without being asked for, and what is not."""

import pytest
from tests.growth import assert_linear

from dragoman_server.text.protection.patterns import certain_spans

FOUND = {
    "Hallo {name}!": ["{name}"],
    "{0} von {1}, {}": ["{0}", "{1}", "{}"],
    "Du hast %d von %1$s und %(file)s.": ["%d", "%1$s", "%(file)s"],
    "Willkommen, %s!": ["%s"],
    "Guten Morgen, ${user}, {{ user.name | upper }}!": ["${user}", "{{ user.name | upper }}"],
    "Das :item fehlt.": [":item"],
    "Ein <b>Wort</b>, <_:link-1/> und a < b > c": ["<b>", "</b>", "<_:link-1/>"],
    "<!-- Ja. --> Nein.": ["<!--", "-->"],
    "Sie haben {count, plural, one {# Datei} other {# {x} Dateien}} hier.": [
        "{count, plural, one {# Datei} other {# {x} Dateien}}"
    ],
    "Siehe www.beispiel.de.": ["www.beispiel.de"],
    "Mehr (unter https://a.example/b_(c)?d=1&e=2).": ["https://a.example/b_(c)?d=1&e=2"],
    "Bei beispiel.de/hilfe, sagt er.": ["beispiel.de/hilfe"],
    "Schreib an max.muster+x@mail.beispiel.de.": ["max.muster+x@mail.beispiel.de"],
    "Öffne `config.yaml` und ``a`b``.": ["`config.yaml`", "``a`b``"],
    "In /etc/hosts, ~/x und C:\\Temp\\a.txt steht es.": ["/etc/hosts", "~/x", "C:\\Temp\\a.txt"],
    "Die Datei src/main.py und config.yaml.": ["src/main.py", "config.yaml"],
    "#Frühling mit @anna_b.": ["#Frühling", "@anna_b"],
    "Artikel AB-4711/X, Sitz 12A, U2 und A380.": ["AB-4711/X", "12A", "U2", "A380"],
    "IBAN DE89 3704 0044 0532 0130 00, BIC 12X.": ["DE89 3704 0044 0532 0130 00", "12X"],
    "Die 4F3A-9921-BC, a1b2c3d und COVID-19.": ["4F3A-9921-BC", "a1b2c3d", "COVID-19"],
    "Nach § 312g in der Hauptstr. 5a steht V1.2.3.": ["312g", "5a", "V1.2.3"],
    "Der Satz¹ und das Wort²³.": ["¹", "²³"],
    "Bei 0x1F und 1.5e-5 ist Schluss.": ["0x1F", "1.5e-5"],
    "80 m², 3 km³, CO₂ und C₆H₁₂O₆ sind 5 µg.": ["m²", "km³", "CO₂", "C₆H₁₂O₆"],
    "请看https://example.com吧，发到a.b@example.com邮箱。": ["https://example.com", "a.b@example.com"],
    "在 https://zh.wikipedia.org/wiki/北京大学，用www.test.com。": [
        "https://zh.wikipedia.org/wiki/北京大学",
        "www.test.com",
    ],
    "http://例子.中国/ 和example.com에서": ["http://例子.中国/", "example.com"],
    "共%d个文件，{名前}さん、$HOME変数": ["%d", "{名前}", "$HOME"],
    "打开/etc/nginx/nginx.conf文件和README.md吧": ["/etc/nginx/nginx.conf", "README.md"],
    "~/文档/报告.txt在C:\\用户\\文档 里": ["~/文档/报告.txt", "C:\\用户\\文档"],
    "#東京2020 で #话题#吧 @张三 你好": ["#東京2020", "#话题#", "@张三"],
    "5G手机和水²": ["5G", "²"],
    "월/화/수/목/금요일, 苹果/香蕉/橙子/梨。": [],
    "경로 /사용자/문서/보고서.pdf 입니다": ["/사용자/문서/보고서.pdf"],
    "https://www.例子.com/path 와 http://shop.例子.com/a": [
        "https://www.例子.com/path",
        "http://shop.例子.com/a",
    ],
    "https://user:密码@host.com/a 或 https://例子.公司/路": [
        "https://user:密码@host.com/a",
        "https://例子.公司/路",
    ],
    "Der Hund www.한국.com/abc ist da.": ["www.한국.com/abc"],
    "보려면 https://예시.com입니다. 네이버.com에서": ["https://예시.com", "네이버.com"],
    "张三@example.com 和 用户@例子.公司": ["张三@example.com", "用户@例子.公司"],
    "联系我test@example.com吧, 문의@한국.kr입니다.": ["test@example.com", "문의@한국.kr"],
    "#서울, #부산. #話題、@张三，你好": ["#서울", "#부산", "#話題", "@张三"],
    "@홍길동님, 안녕": ["@홍길동님"],
    "%(名前)s と {数量, plural, one {# 個} other {# 個}}": [
        "%(名前)s",
        "{数量, plural, one {# 個} other {# 個}}",
    ],
    "보고서.pdf, 보고서_v2.pdf와 파일a.pdf를": ["보고서.pdf", "보고서_v2.pdf", "a.pdf"],
    "请打开报告.pdf": [],
    "Ich 👩\u200d👩\u200d👧\u200d👦 bin 👍🏽 da 🇩🇪 1\ufe0f\u20e3 ❤\ufe0f": [
        "👩\u200d👩\u200d👧\u200d👦",
        "👍🏽",
        "🇩🇪",
        "1\ufe0f\u20e3",
        "❤\ufe0f",
    ],
}


@pytest.mark.parametrize("text", FOUND)
def test_it_is_found(text: str) -> None:
    assert [text[slice(*item.span)] for item in certain_spans(text)] == FOUND[text]


@pytest.mark.parametrize(
    "text",
    [
        "Es sind 50 % der Leute, 100%ig.",
        "Er sagte: ja; und/oder nein.",
        "Um 17:30 Uhr, z.B. am 3.5.2023.",
        "Das kostet $5 { und mehr.",
        "Nr. #1 ist es. Na: gut :-) :)",
        "Der Preis/die Preise, 3/4 Liter.",
        "Ende.Anfang ohne Leerzeichen.",
        "Die 20er Jahre, 4-köpfig, U-Bahn, 100%ig, MP3-Player.",
        "DIE 20ER JAHRE, EINE 3-ZIMMER-WOHNUNG, DAS 1STE, 2ND, 3E.",
        "The 1990s and 90s, the 1st, le 2e, 17h.",
        "Geschäft am 3.MAI um 8 UHR? 2.500g, 1,5m.",
    ],
)
def test_ordinary_text_is_translated(text: str) -> None:
    assert not list(certain_spans(text))


@pytest.mark.parametrize(
    "unit",
    [
        "{",
        "%",
        "a@",
        "`",
        "{a,plural,",
        "/a",
        "www.",
        "a.",
        ":",
        "#",
        "1\ufe0f",
        "\\",
        "http://",
        "$",
        "@a.",
        "A1",
        "A-",
        "1a",
        "a1",
        "A1-",
        "1 ",
        "AB12 ",
        "A₂",
        "A1.1",
        "看",
        "/看",
        "#看",
        "@看",
        "看.",
        "http://看",
        "~/看",
        "看@看.",
        "한글",
        "한글-",
        "한1",
        "한a",
        "a한.1",
        "x@看a",
        "{看",
    ],
)
def test_it_takes_time_in_proportion_to_the_text(unit: str) -> None:
    assert_linear(lambda size: list(certain_spans(unit * size)), 10_000 // len(unit))


def test_an_argument_of_any_length_is_one_span_if_it_is_closed() -> None:
    opening = "{a, plural, one {"
    nest = opening * 300 + "ja" + "}}" * 300
    assert [span.span for span in certain_spans(f"Ein {nest} da.")] == [(4, 4 + len(nest))]
    assert list(certain_spans(opening * 300)) == []
