"""The ledger in a database: tables, connections, what is written and what is read. It needs the extra `log`."""
