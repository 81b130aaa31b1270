"""Run by Alembic, with the connection that migrate() has opened."""

from alembic import context

from streamfleet_platform.registry.tables import Lease

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Lease.metadata,
    transactional_ddl=True,
    render_as_batch=True,
)
context.run_migrations()
