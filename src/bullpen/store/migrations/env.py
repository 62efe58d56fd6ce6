"""How Alembic runs our migrations: inside the transaction of store/schema.py, on its connection."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
