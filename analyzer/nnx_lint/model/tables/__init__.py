"""Facts about libraries that are generated from the libraries' own annotations."""
