"""Entry of the single-file executable: every command, and `hook` without unpacking anything to disk but the libraries."""

from guardhook.__main__ import main

main()
