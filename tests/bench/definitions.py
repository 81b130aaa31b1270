"""How long a fleet of a thousand definitions takes to be read and checked. `python tests/bench/definitions.py [COUNT]`"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from streamfleet_platform.definitions.loader import load_fleet
from streamfleet_platform.definitions.tree import DirectoryTree

BOUND_SECONDS = 3.0

FLEET = """\
apiVersion: streamfleet/v1
kind: Fleet
metadata: {name: bench}
spec:
  clusters: {dev: {bootstrap: "localhost:9092"}}
  secrets: {env: [REGISTRY_PASSWORD]}
  defaults: {health: {noProgress: 5m}}
"""
APP = """\
apiVersion: streamfleet/v1
kind: StreamsApp
metadata: {{name: {name}, owner: team-orders, tier: gold, labels: {{domain: orders}}}}
spec:
  code: {{entrypoint: "examples.apps.orders:topology"}}
  cluster: dev
  applicationId: {name}
  generation: 1
  inputs: {{orders: {{topic: orders.raw}}, customers: {{app: {upstream}, output: enriched}}}}
  outputs: {{enriched: {{topic: {name}.enriched, partitions: 12}}}}
  errors: {{deadLetterTopic: {name}.dlq, onBadRecord: continue, budget: {{rate: 0.001, window: 1h, then: pause}}}}
  topology: {{lock: {name}.lock.json, requireNames: true}}
  state:
    standbys: 1
    stores: {{customer-by-id: {{maxBytes: 20Gi}}}}
  run:
    desired: running
    slot: {{cpu: 1, memory: 2Gi}}
    guarantee: exactly_once_v2
    config: {{commit.interval.ms: 1000, sasl.username: {name}, sasl.password: "${{registry}}"}}
    secrets: {{registry: {{env: REGISTRY_PASSWORD}}}}
  scale:
    mode: auto
    min: 1
    max: 12
    slo: {{maxLatency: 60s, catchUp: 20m}}
    utilization: {{target: 0.7, band: [0.45, 0.95]}}
    scaleDown: {{delay: 1h}}
    freeze: [{{cron: "0 0 * * 5", for: 60h, reason: weekend}}]
  rollout: {{order: standbysFirst, gate: {{restoredWithin: 15m, lagBelow: 1000, for: 2m}}, onGateFail: rollback}}
  protect: {{reset: {{confirm: name, approvals: 1, fromGit: ask}}, retire: {{undoWindow: 72h}}}}
  health: {{noProgress: 5m, maxRebalancesPerHour: 6, maxRestore: 30m}}
"""


def main(count: int) -> int:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "apps").mkdir()
        (root / "fleet.yaml").write_text(FLEET)
        for number in range(count):
            text = APP.format(name=f"app{number}", upstream=f"app{(number or count) - 1}")
            (root / f"apps/app{number}.yaml").write_text(text)
        began, cpu = time.perf_counter(), time.process_time()
        fleet = load_fleet(DirectoryTree(root))
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(
        f"{len(fleet.apps)} definitions in {took:.2f} s, one cycle of {len(fleet.lineage.cycles[0])} apps "
        f"({cpu:.2f} s of CPU, by which nothing is judged)"
    )
    print(f"bound: {BOUND_SECONDS} s for 1000 definitions, on the wall's clock, on whatever else the machine does")
    return 0 if took <= BOUND_SECONDS * max(count, 1000) / 1000 else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
