"""A ledger over HTTP: decisions, rewards and explanations for whatever speaks JSON. It needs the extra `serve`."""
