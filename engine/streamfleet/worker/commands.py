"""What `streamfleet run` and `streamfleet worker reset` do, once their arguments are parsed. Called by cli.py, which
turns errors into sentences and exit codes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import structlog

from streamfleet.config import StreamsConfig
from streamfleet.errors import ConfigError
from streamfleet.kafka.admin import KafkaAdmin
from streamfleet.kafka.client_settings import ClientSettings
from streamfleet.kafka.group_admin import KafkaGroupAdmin
from streamfleet.topology.topology import Topology
from streamfleet.worker.config_file import load_config
from streamfleet.worker.control_client import read_token
from streamfleet.worker.exit_codes import ExitCode
from streamfleet.worker.http_door import parse_address
from streamfleet.worker.logs import LogFormat, LogLevel, configure_logs
from streamfleet.worker.process import Worker, WorkerSettings
from streamfleet.worker.reset import Reset, ResetRefusedError, Tell
from streamfleet.worker.secrets import redactor, secrets_of
from streamfleet.worker.start_positions import StartPosition

log = structlog.get_logger(__name__)

NO_DOOR = "off"

LoadTopology = Callable[[StreamsConfig], Topology]


class RunCommand:
    def __init__(
        self,
        config: Path,
        state_dir: Path | None,
        http: str,
        grace_seconds: float,
        log_format: LogFormat,
        log_level: LogLevel,
        control_token_file: Path | None = None,
    ) -> None:
        configure_logs(log_format, log_level)
        self._config = load_config(config, state_dir=state_dir)
        token = read_token(control_token_file)
        self._secrets = secrets_of(self._config.client_settings) | (set() if token is None else {token})
        configure_logs(log_format, log_level, secrets=self._secrets)
        self._settings = WorkerSettings(None if http == NO_DOOR else parse_address(http), grace_seconds, token)

    def run(self, load_topology: LoadTopology) -> ExitCode:
        """Runs until it is over. Why an app failed is the last line, after everything that the log says."""
        worker = Worker(load_topology(self._config), self._config, self._settings)
        code = worker.run()
        if worker.failure is not None:
            sentence = redactor(self._secrets)(str(worker.failure))
            print(f"error: {sentence}", file=sys.stderr)  # noqa: T201  (a command's last word)
        return code


class ResetCommand:
    def __init__(
        self, config: Path, state_dir: Path | None, start_at: StartPosition, *, is_dry_run: bool, is_agreed: bool
    ) -> None:
        # What people are asked is on standard output; logs beside it only say what is wrong.
        configure_logs("console", "warning")
        self.config = load_config(config, state_dir=state_dir)
        configure_logs("console", "warning", secrets=secrets_of(self.config.client_settings))
        self._start_at = start_at
        self._is_dry_run = is_dry_run
        self._is_agreed = is_agreed

    def run(self, topology: Topology | None, *, tell: Tell, ask: Callable[[str], bool]) -> None:
        reset = self._reset(topology)
        plan = reset.plan(self._start_at)
        for line in plan.lines():
            tell(line)
        if self._is_dry_run:
            return
        if plan.group.is_empty and not self._is_agreed and not self._asked(ask):
            raise ResetRefusedError("nothing was changed", hint="answer y, or pass --yes")
        reset.perform(plan, tell)
        tell(f"app {plan.application_id} is reset")

    def _asked(self, ask: Callable[[str], bool]) -> bool:
        if not sys.stdin.isatty():
            raise ResetRefusedError("nobody is there to ask", hint="pass --yes to reset without asking")
        return ask("Do it?")

    def _reset(self, topology: Topology | None) -> Reset:
        if self.config.bootstrap_servers is None:
            raise ConfigError("bootstrap.servers is missing", hint="name at least one broker, as host:port")
        mapping = {"bootstrap.servers": self.config.bootstrap_servers, **self.config.client_settings}
        settings = ClientSettings.from_mapping(mapping).admin(client_id=f"{self.config.application_id}-reset")
        return Reset(self.config, KafkaAdmin(settings), KafkaGroupAdmin(settings), topology)
