"""What Alembic runs: the migrations, in the transaction of the connection that it was given (`home`)."""

from alembic import context

from dither.log.database.home import VERSIONS
from dither.log.database.sql_tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, version_table=VERSIONS)
context.run_migrations()
