"""The first of the three apps of the example fleet: orders, enriched with who placed them.

    orders ──filter──┐
                     join ──> enriched-orders
    customers ───────┘  (a table)

Both topics are keyed by customer, so the join needs no repartition. country_activity.py reads what comes out.
"""

from __future__ import annotations

import streamfleet as sf
from examples.apps.orders import customer_serde, enrich, enriched_serde, order_serde, text


def topology() -> sf.Topology:
    builder = sf.StreamsBuilder()
    customers = builder.table("customers", key_serde=text, value_serde=customer_serde, store="customers")
    (
        builder.stream("orders", key_serde=text, value_serde=order_serde)
        .filter(lambda customer, order: order.cents > 0, name="only-paid")
        .join(customers, enrich, name="with-customer")
        .to("enriched-orders", key_serde=text, value_serde=enriched_serde)
    )
    return builder.build()
