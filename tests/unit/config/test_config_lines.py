"""Finding the line of a TOML key."""

import tomllib

from streamd.config.lines import key_lines, line_of

TRICKY = '''# a comment = 1
first = "with # and [brackets] = 1"   # [not] a table
"quoted key" = 1
'literal.key' = 2

[table]  # comment
list = [
  "a", # ] inside a comment
  'b]',
  { inline = 1 },
]
text = """
fake = 1
[fake]
\\""" still text """
plain.dotted = 3

[[array]]
x = 1
[ spaced . "name" ]
date = 1979-05-27T07:32:00Z
last = \'\'\'
fake = 2
\'\'\'
end = true'''


def test_lines_of_a_tricky_file() -> None:
    tomllib.loads(TRICKY)
    assert key_lines(TRICKY) == {
        ("first",): 2,
        ("quoted key",): 3,
        ("literal.key",): 4,
        ("table",): 6,
        ("table", "list"): 7,
        ("table", "text"): 12,
        ("table", "plain", "dotted"): 16,
        ("array",): 18,
        ("array", "0"): 18,
        ("array", "0", "x"): 19,
        ("spaced", "name"): 20,
        ("spaced", "name", "date"): 21,
        ("spaced", "name", "last"): 22,
        ("spaced", "name", "end"): 25,
    }


def test_a_key_inside_an_inline_table_gets_the_line_of_the_key_around_it() -> None:
    lines = key_lines("\ncc = { scream = { x = 1 } }\n")
    assert line_of(lines, ("cc", "scream", "x")) == 2
    assert line_of(lines, ("other",)) is None


def test_an_empty_file_has_no_keys() -> None:
    assert key_lines("") == {}
    assert key_lines("\n  # nothing\n") == {}


def test_elements_of_an_array_of_tables_have_their_number_in_the_key() -> None:
    text = "[[flow]]\nx = 1\n[flow.options]\ny = 2\n[[flow]]\nx = 3\n[[flow.part]]\nz = 4\n"
    tomllib.loads(text)
    assert key_lines(text) == {
        ("flow",): 1,
        ("flow", "0"): 1,
        ("flow", "0", "x"): 2,
        ("flow", "0", "options"): 3,
        ("flow", "0", "options", "y"): 4,
        ("flow", "1"): 5,
        ("flow", "1", "x"): 6,
        ("flow", "1", "part"): 7,
        ("flow", "1", "part", "0"): 7,
        ("flow", "1", "part", "0", "z"): 8,
    }
