"""How settings are described to people: in `--help`, in listings, on the reference page."""

import ast
import dataclasses
import inspect
import textwrap
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from streamd.config.fields import form_of
from streamd.config.show import toml_value


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


def type_text(hint: Any) -> str:
    """A type as a user understands it: what may be written; None is never written."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "|".join(map(str, parts))
    if origin in (Union, UnionType):
        return "|".join(type_text(part) for part in parts if part is not NoneType)
    if origin in (tuple, list):
        return f"list of {type_text(parts[0])}"
    return _TYPE_WORDS.get(hint, "text")


_TYPE_WORDS = {bool: "true|false", int: "integer", float: "number"}


def default_text(field: "dataclasses.Field[Any]") -> str:
    """A dataclass field's default as it would stand in a file; "unset" for None."""
    if field.default is not dataclasses.MISSING:
        value = field.default
    else:
        assert field.default_factory is not dataclasses.MISSING
        value = field.default_factory()
    return "unset" if value is None else toml_value(value)


def written_default(field: FieldInfo) -> str:
    """A field's default in the form a user would write it."""
    annotation: Any = field.annotation
    if field.metadata:
        annotation = Annotated[annotation, *field.metadata]
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    value = adapter.dump_python(field.default, mode="json")
    if isinstance(value, list):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def metavar(field: FieldInfo) -> str:
    """How a value is written, for help and reference."""
    form = form_of(field.annotation, field.metadata)
    if form is not None:
        return form.metavar
    for part in (field.annotation, *get_args(field.annotation)):
        if get_origin(part) is Literal:
            return type_text(part)
        if part is bool:
            return "true|false"
        if part in (int, float):
            return "NUMBER"
    return "TEXT"
