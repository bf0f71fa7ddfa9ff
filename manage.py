#!/usr/bin/env python3
"""Run a command of debateweb: ``python manage.py help`` lists them."""

from debateweb.commandline import main

if __name__ == "__main__":
    main()
