"""Apps whose error budget is spent wait for a person."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("app", sa.Column("quarantine", sa.Text(), nullable=True))
