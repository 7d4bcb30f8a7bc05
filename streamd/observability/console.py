"""What a person at a terminal is told when a command ends badly."""

import sys

from streamd.errors import StreamdError


def say_error(program: str, error: StreamdError) -> int:
    """One line on stderr per problem the error names; gives the exit code."""
    for line in str(error).splitlines():
        print(f"{program}: {line}", file=sys.stderr)
    return error.exit_code
