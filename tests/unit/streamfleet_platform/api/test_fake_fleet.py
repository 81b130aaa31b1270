import pytest
from tests.contracts.fleet_service_contract import FleetServiceContract


class TestFakeFleet(FleetServiceContract):
    """What the API's tests rest on behaves like the real one."""

    @pytest.fixture
    def service(self, fleet):
        return fleet

    @pytest.fixture
    def settle(self, fleet):
        return fleet.settle
