"""Resources of the API that live in ``runs``: under ``/api/v1/workspaces/<workspace>/``."""

from ninja import Router

from runs.api import experiments, models, protocols, sets

router = Router()
for part in (sets, protocols, models, experiments):
    router.add_router("", part.router)

__all__ = ["router"]
