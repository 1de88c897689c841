"""One decision: what is asked, what is demanded, what is drawn and shown, and how probable that was."""
