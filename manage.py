#!/usr/bin/env python
"""Starts Django, nothing else."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    if sys.argv[1:2] == ["up"]:  # starts the others, so it is not kept waiting for apps that it does not use
        from webapp.localstack.management.commands.up import Command

        Command().run_from_argv(sys.argv)
        sys.exit()
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        # a traceback would hide the one thing to know; everything else keeps its own
        sys.exit(
            f"touchstone: the database does not answer: {str(error).strip()}\n"
            "Start it with `make run` (in another terminal), or point DATABASE_URL at a running server."
        )
