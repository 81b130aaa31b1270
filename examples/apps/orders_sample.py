"""Records for the orders app: a dozen of them in a quarter of an hour, with the cases that matter.

A refund (filtered out), an order of an unknown customer (no match), one that is late but within grace (counted in its
old window), and one that is too late (dropped).
"""

from __future__ import annotations

from examples.apps.orders import Customer, Order

NOON_MS = 1_767_268_800_000
"""2026-01-01 12:00 UTC."""

CUSTOMERS = {
    "c1": Customer("Ada", "SE"),
    "c2": Customer("Björn", "SE"),
    "c3": Customer("Chloé", "FR"),
    "c4": Customer("Dmitri", "FI"),
}

ORDERS = [  # seconds after noon, order id, order
    (5, "o-1", Order("c1", "lamp", 4_900)),
    (40, "o-2", Order("c2", "chair", 12_900)),
    (65, "o-3", Order("c3", "lamp", 4_900)),
    (90, "o-4", Order("c1", "lamp", -4_900)),  # a refund
    (130, "o-5", Order("c9", "desk", 39_900)),  # nobody we know
    (200, "o-6", Order("c4", "desk", 39_900)),
    (310, "o-7", Order("c3", "chair", 12_900)),
    (250, "o-8", Order("c3", "rug", 8_900)),  # late by a minute, within grace
    (330, "o-9", Order("c2", "rug", 8_900)),
    (610, "o-10", Order("c4", "chair", 12_900)),
    (20, "o-11", Order("c1", "rug", 8_900)),  # ten minutes late: its window is closed
    (640, "o-12", Order("c1", "desk", 39_900)),
]
