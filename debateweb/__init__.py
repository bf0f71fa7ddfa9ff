"""The site: settings, services, access, health, and the commands ``up`` and ``demo``."""

__version__ = "0.1.0"
