"""The life of a worker with a pretended app; real signals are sent to a real process in the integration tests."""

import signal
import threading

import pytest

import streamfleet as sf
from streamfleet.errors import ConfigError, StreamsError
from streamfleet.kafka_streams.states import ClientState
from streamfleet.metrics import Metrics
from streamfleet.worker.app_record import AppRecord, AppRecordFile
from streamfleet.worker.exit_codes import ExitCode
from streamfleet.worker.process import Worker, WorkerSettings


class Left(BaseException):
    def __init__(self, code):
        self.code = code


def leave(code):
    raise Left(code)


class PretendedApp:
    """Runs at once; `on_running` is called by its start."""

    def __init__(self, config, *, on_running=lambda app: None, start_error=None, on_close=None):
        self.config = config
        self.state = ClientState.CREATED
        self.failure = None
        self._on_running = on_running
        self._start_error = start_error
        self._on_close = on_close
        self._listener = None
        self.was_closed = False
        self.closes = []
        self._never = threading.Event()

    def set_state_listener(self, listener):
        self._listener = listener

    def start(self):
        if self._start_error is not None:
            raise self._start_error
        self._to(ClientState.RUNNING)
        self._on_running(self)

    def fail(self, error):
        self.failure = error
        self._to(ClientState.ERROR)

    def close(self, timeout_seconds, *, leave_group=False):
        self.closes.append(leave_group)
        if self._on_close is not None:
            self._on_close(self)
            self._never.wait(60)
        self.was_closed = True
        if self.state is not ClientState.ERROR:
            self._to(ClientState.NOT_RUNNING)
        return True

    def _to(self, state):
        before, self.state = self.state, state
        self._listener(state, before)

    def threads(self):
        return []

    def metrics(self):
        return Metrics()


@pytest.fixture
def config(tmp_path):
    return sf.StreamsConfig(application_id="shop", state_dir=tmp_path)


def worker(topology, config, app, grace_seconds=20.0):
    settings = WorkerSettings(http=None, grace_seconds=grace_seconds)
    return Worker(topology, config, settings, streams=app, hurry=leave)


def terminate(app):
    signal.raise_signal(signal.SIGTERM)


def test_a_signal_closes_the_app_and_ends_with_0(topology, config):
    app = PretendedApp(config, on_running=terminate)
    assert worker(topology, config, app).run() is ExitCode.CLEAN
    assert app.was_closed


def test_an_app_that_fails_ends_with_1(topology, config):
    app = PretendedApp(config, on_running=lambda app: app.fail(StreamsError("it broke")))
    made = worker(topology, config, app)
    assert made.run() is ExitCode.FAILED
    assert str(made.failure) == "it broke"
    assert app.was_closed


@pytest.mark.parametrize(
    ("error", "code"), [(StreamsError("no topic"), ExitCode.FAILED), (ConfigError("no broker"), ExitCode.MISUSED)]
)
def test_an_app_that_cannot_start_ends_with_the_code_of_its_error(topology, config, error, code):
    assert worker(topology, config, PretendedApp(config, start_error=error)).run() is code


def test_an_app_whose_code_calls_sys_exit_when_it_starts_ends_and_says_so(topology, config):
    made = worker(topology, config, PretendedApp(config, start_error=SystemExit(0)))
    assert made.run() is ExitCode.FAILED
    assert "SystemExit(0)" in str(made.failure)


def test_a_second_signal_ends_it_at_once(topology, config):
    app = PretendedApp(config, on_running=terminate, on_close=terminate)
    with pytest.raises(Left) as left:
        worker(topology, config, app, grace_seconds=3600).run()
    assert left.value.code == ExitCode.DIRTY


def test_a_shutdown_that_takes_too_long_is_cut_short(topology, config):
    app = PretendedApp(config, on_running=terminate, on_close=lambda app: None)
    with pytest.raises(Left) as left:
        worker(topology, config, app, grace_seconds=0.05).run()
    assert left.value.code == ExitCode.DIRTY


def test_an_app_that_fails_and_cannot_be_closed_still_ends_with_1(topology, config):
    app = PretendedApp(config, on_running=lambda app: app.fail(StreamsError("it broke")), on_close=lambda app: None)
    with pytest.raises(Left) as left:
        worker(topology, config, app, grace_seconds=0.05).run()
    assert left.value.code == ExitCode.FAILED


def test_a_drained_worker_stays_until_it_is_told_to_stop(topology, config):
    app = PretendedApp(config)
    made = worker(topology, config, app)

    def drain_then_terminate(app):
        draining = threading.Thread(target=made._drain)
        made._starter = threading.Thread()  # this is called by the start, which is as good as over
        made._starter.start()
        draining.start()
        draining.join()
        terminate(app)

    app._on_running = drain_then_terminate
    assert made.run() is ExitCode.CLEAN
    assert app.closes == [True, False]


def test_signal_handlers_are_put_back(topology, config):
    before = signal.getsignal(signal.SIGTERM)
    worker(topology, config, PretendedApp(config, on_running=terminate)).run()
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_topics_of_the_app_are_recorded_before_it_starts(topology, config):
    app = PretendedApp(config, start_error=StreamsError("no broker"))
    worker(topology, config, app).run()
    record = AppRecordFile(config.state_dir / "shop").load()
    assert record.input_topics == ("words",)
    assert record.internal_topics == ("shop-by-word-repartition", "shop-counts-changelog")


def test_an_app_with_a_pending_reset_does_not_start(topology, config):
    AppRecordFile(config.state_dir / "shop").save(AppRecord("shop", is_reset_pending=True))
    with pytest.raises(StreamsError, match="worker reset"):
        worker(topology, config, PretendedApp(config)).run()
