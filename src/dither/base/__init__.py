"""What every other part stands on: arrays, errors, streams of chance, files, and what finds and runs parts."""
