"""Which commands there are, in the order in which one meets them. What they do is in the modules beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

from streamfleet_platform.cli import doctor, files, jobs, looking, operating, serving, tokens

commands = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

_PANELS: Mapping[str, tuple[Callable[..., None], ...]] = {
    "Definitions, in a directory": (files.validate, files.lock, files.diff, files.schema),
    "A server": (serving.server, serving.up, serving.down, doctor.doctor),
    "The fleet": (operating.plan, operating.apply, looking.status, looking.describe, looking.logs, looking.query),
    "An app": (
        operating.start,
        operating.stop,
        operating.scale,
        operating.probe,
        operating.upgrade,
        operating.reset,
        operating.retire,
        operating.approve,
        operating.cancel,
        jobs.audit,
        jobs.bootstrap,
    ),
}

for _panel, _functions in _PANELS.items():
    for _function in _functions:
        commands.command(rich_help_panel=_panel)(_function)
commands.add_typer(tokens.commands, name="token", rich_help_panel="A server")
