"""Rows in, rows out: input sources, the result schema, and the writer of part files. Pictures are not decoded here."""
