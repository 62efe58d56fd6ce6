"""Run Alembic's migrations inside the transaction, and on the connection, of store/schema.py."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
