"""The Django application ``debateweb``: the site itself."""

from django.apps import AppConfig


class DebatewebConfig(AppConfig):
    name = "debateweb"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Makes our Celery application the one that ``current_app`` and ``shared_task`` mean.
        pass
