"""The descriptions written under the fields of plug-ins' dataclasses."""

import ast
import inspect
import textwrap


def field_docs(config_type: type) -> dict[str, str]:
    """The string literal that follows each field, by field; empty where the source is not there."""
    try:
        source = textwrap.dedent(inspect.getsource(config_type))
    except (OSError, TypeError):
        return {}
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    docs: dict[str, str] = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            docs[field.target.id] = " ".join(str(after.value.value).split())
    return docs


def type_text(hint: object) -> str:
    """A type as a user understands it."""
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
