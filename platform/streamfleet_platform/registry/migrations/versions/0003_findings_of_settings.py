"""A finding about a topic's setting is known by the setting too: before, two of one topic were opened again by every audit.

Of those that are open, the oldest of each setting stays open, as the one that was first seen; the others are gone.
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_FINDING = sa.table(
    "finding",
    sa.column("id", sa.Integer()),
    sa.column("app", sa.String()),
    sa.column("identity", sa.String()),
    sa.column("evidence", sa.JSON()),
    sa.column("state", sa.String()),
)


def upgrade() -> None:
    connection = op.get_bind()
    columns = _FINDING.c
    query = sa.select(columns.id, columns.app, columns.identity, columns.evidence)
    known = set()
    for row in connection.execute(query.where(columns.state != "gone").order_by(columns.id)).all():
        about, setting = json.loads(row.identity), (row.evidence or {}).get("config")
        identity = json.dumps(about if setting is None else [*about[:4], setting])
        changes = {"identity": identity} | ({"state": "gone"} if (row.app, identity) in known else {})
        known.add((row.app, identity))
        connection.execute(sa.update(_FINDING).where(columns.id == row.id).values(**changes))
