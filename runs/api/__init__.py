"""Resources of the API that live in ``runs``: under ``/api/v1/workspaces/<workspace>/``."""

from ninja import Router

from runs.api import experiments, imports, models, protocols

router = Router()
for part in (imports, protocols, models, experiments):
    router.add_router("", part.router)

__all__ = ["router"]
