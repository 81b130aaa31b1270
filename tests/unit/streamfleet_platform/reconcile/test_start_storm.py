"""A machine comes back, and with it every worker it had: they are started in turns, and all of them are."""

from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform.reconcile.reconciler import MAX_STARTS

APPS = ("one", "two", "three")
SLOTS = 8


def test_a_pass_starts_only_so_many_workers_that_were_lost_and_the_next_ones_the_rest(tmp_path):
    lab = Lab(tmp_path)
    lab.names = {name: name for name in APPS}
    for name in APPS:
        lab.declare(name, entry=name, min=SLOTS)
    lab.start()
    for operation in lab.apply().operations:
        assert lab.run(operation.id).state == "succeeded"
    for name in APPS:
        for slot in range(SLOTS):
            lab.runtime.lose(name, slot)
    before = len(lab.runtime.calls)

    lab.step()
    assert (
        lab.runtime.calls[before:]
        == [("start", name, slot) for name in sorted(APPS) for slot in range(SLOTS)][:MAX_STARTS]
    )
    lab.step()
    begun = lab.runtime.calls[before:]
    assert len(begun) == len(set(begun)) == len(APPS) * SLOTS > MAX_STARTS, "each once"
    lab.step()
    assert {app.phase for app in lab.fleet.apps()} == {"running"}
    lab.server.close()
