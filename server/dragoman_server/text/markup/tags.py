"""The meaning of elements' names: which elements bound sentences, and which are not translated."""

from collections.abc import Sequence

_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "audio",
        "base",
        "blockquote",
        "body",
        "br",
        "button",
        "canvas",
        "caption",
        "center",
        "col",
        "colgroup",
        "dd",
        "details",
        "dialog",
        "dir",
        "div",
        "dl",
        "dt",
        "embed",
        "fieldset",
        "figcaption",
        "figure",
        "file",
        "footer",
        "form",
        "frame",
        "frameset",
        "group",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "head",
        "header",
        "hgroup",
        "hr",
        "html",
        "iframe",
        "legend",
        "li",
        "link",
        "main",
        "map",
        "menu",
        "meta",
        "nav",
        "note",
        "noframes",
        "noscript",
        "object",
        "ol",
        "optgroup",
        "option",
        "p",
        "param",
        "picture",
        "search",
        "section",
        "seg",
        "segment",
        "select",
        "source",
        "summary",
        "table",
        "target",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "title",
        "tr",
        "trans-unit",
        "tu",
        "tuv",
        "ul",
        "unit",
        "video",
        "xliff",
        "xml",
    ]
)
_UNTOUCHED_BLOCKS = frozenset(["pre", "script", "style", "svg", "math", "template", "textarea"])
# The last four are XLIFF's for what is code to another system.
_UNTOUCHED = frozenset(["code", "kbd", "samp", "var", "tt", "bpt", "ept", "it", "ph"])
Attributes = Sequence[tuple[str, str | None]]


def is_block(name: str) -> bool:
    """Whether no sentence goes on across its tags."""
    return name in _BLOCKS or name in _UNTOUCHED_BLOCKS


def is_untouched(name: str, attributes: Attributes) -> bool:
    """Whether nothing in it is translated."""
    if name in _UNTOUCHED or name in _UNTOUCHED_BLOCKS:
        return True
    values = dict(attributes)
    if (values.get("translate") or "").lower() == "no":
        return True
    return "notranslate" in (values.get("class") or "").split()
