"""Which line of a TOML file a key stands on; the standard parser does not tell.

Only used on text `tomllib` has accepted, so it need not judge, only walk.
"""

import re

Parts = tuple[str, ...]

_KEY = re.compile(r"""[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*(\.?)""")
_VALUE_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[\[\]{}]|\n|[^\"'\#\[\]{}\n]+",
    re.DOTALL,
)


def key_lines(text: str) -> dict[Parts, int]:
    """Line number (from 1) of every table header and key outside inline tables.

    An element of an array of tables has its number, from 0, as a part of its key.
    """
    lines: dict[Parts, int] = {}
    elements: dict[Parts, int] = {}
    table: Parts = ()
    position = 0
    while position < len(text):
        start = _skip_blank(text, position)
        if start >= len(text):
            break
        line = text.count("\n", 0, start) + 1
        if text[start] == "[":
            array = text[start + 1] == "["
            name, position = _read_key(text, start + (2 if array else 1))
            table = _numbered(name, elements)
            if array:
                lines.setdefault(table, line)
                elements[table] = elements.get(table, -1) + 1
                table = (*table, str(elements[table]))
            lines.setdefault(table, line)
            position = _skip_line(text, position)
        else:
            key, position = _read_key(text, start)
            lines.setdefault(table + key, line)
            position = _skip_value(text, position + 1)
    return lines


def line_of(lines: dict[Parts, int], key: Parts) -> int | None:
    """The key's line, or that of the nearest enclosing key; None when there is neither."""
    for length in range(len(key), 0, -1):
        found = lines.get(key[:length])
        if found is not None:
            return found
    return None


def _numbered(name: Parts, elements: dict[Parts, int]) -> Parts:
    """The name of a table with the numbers of the array elements it lies in."""
    table: Parts = ()
    for number, part in enumerate(name, start=1):
        table = (*table, part)
        if number < len(name) and table in elements:
            table = (*table, str(elements[table]))
    return table


def _skip_blank(text: str, position: int) -> int:
    while position < len(text):
        if text[position] == "#":
            position = _skip_line(text, position)
        elif text[position].isspace():
            position += 1
        else:
            break
    return position


def _skip_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _read_key(text: str, position: int) -> tuple[Parts, int]:
    """A possibly dotted key; ends at the `=` or `]` behind it."""
    parts = []
    more = "."
    while more and (match := _KEY.match(text, position)):
        quoted, literal, bare, more = match.groups()
        parts.append(next(part for part in (quoted, literal, bare) if part is not None))
        position = match.end()
    return tuple(parts), position


def _skip_value(text: str, position: int) -> int:
    """The start of the line after a value, which may span lines."""
    depth = 0
    while match := _VALUE_TOKEN.match(text, position):
        position = match.end()
        token = match[0]
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        elif token == "\n" and depth == 0:
            return position
    return len(text)
