"""Every bar of the peers' table is judged by what `make bench` runs."""

from tests.bench.peers import bars, plan
from tests.bench.peers.runners_built import all_runners


def measured(*, long):
    """A row for each run that there is without further wishes."""
    runners = [runner for runner in all_runners().values() if runner.default]
    steady = {"cpu_us": 2.0, "rate": 1000.0, "broker_us": 1.0}
    return [
        {"runner": run.runner.name, "workload": run.name, "long": long, "round": "1", "records": 1, "steady": steady}
        for run in plan.runs(runners, None, 1, long=long)
    ]


def test_every_workload_with_a_bar_is_compared_with_java():
    judged = bars.lines(measured(long=False) + measured(long=True))
    compared = {line.split(" ")[1] for line in judged if "CPU, of Java's" in line}
    assert compared == set(bars.CPU_BARS)


def test_only_a_restore_is_compared_with_java_in_a_short_run():
    compared = [line.split(" |")[0] for line in bars.lines(measured(long=False)) if "CPU, of Java's" in line]
    assert compared == ["| R"]
