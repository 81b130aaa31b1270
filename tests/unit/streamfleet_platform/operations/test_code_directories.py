"""Code is deleted with the last app that names it, but not while an apply is about to name it."""

from tests.unit.streamfleet_platform.simulated_world import Lab

from streamfleet_platform.model.operation import OperationKind


class Slow(Lab):
    """While an app `two` is compiled, the only app so far is retired."""

    retirement = None

    def compile(self, code, entrypoint, **more):
        if entrypoint.endswith("second") and self.retirement is None:
            self.retirement = self.operate(OperationKind.RETIRE, confirm="one", undo_window_seconds=0).id
            for _ in range(20):
                self.step()
            assert "definitions are being applied" in self.fleet.operation(self.retirement).step
            assert code.is_dir(), "exported, not recorded yet"
        return super().compile(code, entrypoint, **more)


def test_an_app_that_is_applied_while_the_last_user_of_its_code_is_retired_has_its_code(tmp_path):
    lab = Slow(tmp_path)
    lab.names = {"second": "two"}
    lab.deployed()
    lab.declare("two", entry="second")
    [operation] = lab.apply(apps=("two",)).operations
    assert lab.run(lab.retirement).state == "succeeded"
    assert lab.run(operation.id).state == "succeeded"
    [spec] = lab.runtime.specs.values()
    assert spec.app == "two" and (spec.code / "code.py").is_file()
    lab.run(lab.operate(OperationKind.RETIRE, app="two", confirm="two", undo_window_seconds=0).id)
    assert not spec.code.exists()
    lab.server.close()
