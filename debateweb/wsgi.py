"""The WSGI application that the web server loads."""

import os
import signal

from django.core.wsgi import get_wsgi_application

from debateweb.services.process import die_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "debateweb.settings")
if os.environ.get("DEBATEWEB_DIE_WITH_PARENT"):
    # The server's worker processes are grandchildren of ``up``: the first link is not enough.
    die_with_parent(signal.SIGKILL, os.getppid())

application = get_wsgi_application()
