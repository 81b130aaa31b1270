"""Every operation there is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streamfleet_platform.model.operation import OperationKind
from streamfleet_platform.operations.bootstrap import Bootstrap
from streamfleet_platform.operations.deploy import Deploy
from streamfleet_platform.operations.probe import Probe
from streamfleet_platform.operations.reset import Reset
from streamfleet_platform.operations.retire import Retire
from streamfleet_platform.operations.scale import Scale
from streamfleet_platform.operations.start_stop import Start, Stop
from streamfleet_platform.operations.steps import OperationType
from streamfleet_platform.operations.upgrade import Upgrade

OPERATIONS: Mapping[OperationKind, OperationType] = MappingProxyType(
    {
        kind.kind: kind
        for kind in (Deploy(), Scale(), Probe(), Reset(), Upgrade(), Start(), Stop(), Retire(), Bootstrap())
    }
)
