"""Import lines of other libraries: replace the package's name, and the rest of a program runs."""
