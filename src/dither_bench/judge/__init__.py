"""Judge: what differs, and how certain is it?"""
