"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "app",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("tier", sa.String(), nullable=True),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("application_id", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("revision", sa.String(), nullable=False),
        sa.Column("good_revision", sa.String(), nullable=True),
        sa.Column("wanted_generation", sa.Integer(), nullable=False),
        sa.Column("wanted_revision", sa.String(), nullable=False),
        sa.Column("desired", sa.String(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("phase_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("epochs", sa.JSON(), nullable=False),
        sa.Column("fenced_by", sa.String(), nullable=True),
        sa.Column("retired_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("observed", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        sa.UniqueConstraint("application_id"),
    )
    op.create_table(
        "audit_partition",
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("measured", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("app", "run", "number"),
    )
    op.create_table(
        "audit_run",
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("engine", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("findings", sa.Integer(), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.Column("report_html", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("app", "id"),
    )
    op.create_table(
        "bootstrap_run",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("intent_id", sa.String(), nullable=False),
        sa.Column("operation", sa.String(), nullable=True),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("intent_id"),
    )
    op.create_index(op.f("ix_bootstrap_run_app"), "bootstrap_run", ["app"], unique=False)
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("app", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("event_app", "event", ["app", "id"], unique=False)
    op.create_table(
        "finding",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("identity", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=True),
        sa.Column("store", sa.String(), nullable=True),
        sa.Column("partition", sa.Integer(), nullable=True),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("advice", sa.Text(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("first_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("finding_app", "finding", ["app", "state"], unique=False)
    op.create_table(
        "fleet_state",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("revision", sa.String(), nullable=True),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("flows", sa.JSON(), nullable=False),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "intent",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("asked", sa.String(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "internal_topic",
        sa.Column("application_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("topic_id", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("store", sa.String(), nullable=True),
        sa.Column("partitions", sa.Integer(), nullable=False),
        sa.Column("configs", sa.JSON(), nullable=False),
        sa.Column("is_orphan", sa.Boolean(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("application_id", "name"),
    )
    op.create_index(op.f("ix_internal_topic_app"), "internal_topic", ["app"], unique=False)
    op.create_table(
        "lease",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "observation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lag_records", sa.Integer(), nullable=True),
        sa.Column("records_per_second", sa.Float(), nullable=True),
        sa.Column("slots_ready", sa.Integer(), nullable=False),
        sa.Column("restoring_tasks", sa.Integer(), nullable=False),
        sa.Column("warming_tasks", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("observation_app", "observation", ["app", "at"], unique=False)
    op.create_table(
        "operation",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("busy_app", sa.String(), nullable=True),
        sa.Column("intent_id", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("is_rolling_back", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("busy_app"),
        sa.UniqueConstraint("intent_id"),
    )
    op.create_index("operation_app", "operation", ["app", "created_at"], unique=False)
    op.create_table(
        "phase_change",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("phase_change_app", "phase_change", ["app", "id"], unique=False)
    op.create_table(
        "revision",
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("code_id", sa.String(), nullable=False),
        sa.Column("definition_hash", sa.String(), nullable=False),
        sa.Column("topology_hash", sa.String(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("lock", sa.Text(), nullable=False),
        sa.Column("picture", sa.Text(), nullable=False),
        sa.Column("provenance", sa.JSON(), nullable=False),
        sa.Column("cluster_settings", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("app", "id"),
    )
    op.create_table(
        "scaling_record",
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("decision", sa.JSON(), nullable=False),
        sa.Column("recommended", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("app"),
    )
    op.create_table(
        "step",
        sa.Column("operation", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("memory", sa.JSON(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("operation", "number"),
    )
    op.create_table(
        "worker",
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("revision", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("seen", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("app", "slot"),
    )
    _append_only()


def _append_only() -> None:
    """The log is only added to, whoever connects."""
    if op.get_bind().dialect.name == "sqlite":
        for what in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER event_no_{what.lower()} BEFORE {what} ON event "
                "BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END"
            )
    else:
        op.execute(
            "CREATE FUNCTION event_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the event log is append-only'; END $$"
        )
        op.execute(
            "CREATE TRIGGER event_append_only BEFORE UPDATE OR DELETE ON event "
            "FOR EACH ROW EXECUTE FUNCTION event_append_only()"
        )
