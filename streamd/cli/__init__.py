"""The command line: parses, calls, and decides nothing. Commands import what they need when run."""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of `argv` (default: the process's own) and give the exit code."""
    from streamd.cli.app import build_app
    from streamd.cli.arguments import UsageProblem, prepare
    from streamd.errors import StreamdError

    given = list(sys.argv[1:] if argv is None else argv)
    program = " ".join(["streamd", *given[:1]])
    try:
        arguments, plugin_flags = prepare(given)
        build_app(arguments)(args=arguments, prog_name="streamd", obj=plugin_flags)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except UsageProblem as problem:
        print(f"{program}: {problem}", file=sys.stderr)
        return 2
    except StreamdError as error:
        from streamd.observability.console import say_error

        return say_error(program, error)
    except KeyboardInterrupt:
        return 130
    return 0
