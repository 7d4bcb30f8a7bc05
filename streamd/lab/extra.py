"""The libraries of the extra `lab`, loaded when first needed."""

import importlib
from types import ModuleType

from streamd.errors import StartupError


def need(module: str) -> ModuleType:
    """The module of that name; StartupError naming the extra when it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or module).partition(".")[0]
        raise StartupError(
            f"the lab needs {missing}, which is not installed: pip install 'streamd[lab]'"
        ) from None
