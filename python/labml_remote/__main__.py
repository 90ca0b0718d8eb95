"""``python -m labml_remote``."""

from .cli import main

main()
