"""Text that must show literally where Streamlit reads Markdown: errors, labels, captions."""

_MARKS = "\\`*_{}[]()<>#+-.!|~$:&^=\"'@/"


def literal(text: str) -> str:
    """`text` with every mark escaped, so that `**a**`, `$x$`, `:red[x]` and `<b>` show as typed."""
    return "".join(f"\\{symbol}" if symbol in _MARKS else symbol for symbol in text)
