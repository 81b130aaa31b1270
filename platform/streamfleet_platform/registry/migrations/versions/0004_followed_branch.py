"""What became of scaling decisions is remembered, and how far the followed branch was."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("scaling_record", sa.Column("attempts", sa.JSON(), nullable=False, server_default="{}"))
    op.add_column("fleet_state", sa.Column("followed", sa.JSON(), nullable=False, server_default="{}"))
