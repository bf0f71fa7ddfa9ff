"""The workspace's models: addresses, prices, limits. Keys stay in the environment."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router

from debateweb.api_access import (
    REFUSALS,
    In,
    body_text,
    person_of,
    text_body,
    workspace_to_own,
    workspace_to_read,
)
from debateweb.errors import InputError
from runs.providers.catalog import ModelConfig, missing
from runs.providers.keys import PROVIDER_KEYS, host_refusal, unlisted
from runs.providers.models_yaml import load_models_yaml
from runs.schemas import CheckedModelOut, ImportedModelsOut, ModelsOut
from runs.services.models_table import import_models, model_json, model_named, table_of

KEY_ENDINGS = ("_API_KEY", "_TOKEN", "_KEY")
#: Secrets of this site, which no model's key may be taken from.
OWN_VARIABLES = ("DEBATEWEB_", "DATABASE", "REDIS", "DJANGO")

router = Router(tags=["models"])


@router.get("/models", response={200: ModelsOut, **REFUSALS})
def list_models(request: HttpRequest, workspace: In) -> dict[str, Any]:
    """List the workspace's table of models."""
    table = table_of(workspace_to_read(request, workspace))
    return {"items": [model_json(config) for config in table.values()]}


@router.post(
    "/models",
    response={200: ImportedModelsOut, **REFUSALS},
    openapi_extra=text_body(
        "models:\n  my-model: {base_url: 'http://127.0.0.1:8080/v1', free: true}\n"
    ),
)
def upload_models(request: HttpRequest, workspace: In) -> dict[str, Any]:
    """Take over a models.yaml into the table; for owners. What has not changed adds nothing."""
    place = workspace_to_own(request, workspace)
    models = load_models_yaml(body_text(request), "body", os.environ)
    _refuse_foreign_keys(models.values())
    changed = import_models(workspace=place, models=models, actor=person_of(request))
    return {"models": sorted(models), "changed": changed}


@router.get("/check-model", response={200: CheckedModelOut, **REFUSALS})
def check_model(
    request: HttpRequest,
    workspace: In,
    model: Annotated[str, Query(min_length=1, max_length=500, example="openai/gpt-4.1-mini")],
) -> dict[str, Any]:
    """Say what a model is and what keeps a call to it from starting. No call is made."""
    place = workspace_to_read(request, workspace)
    config = model_named(workspace=place, name=model, environ=os.environ)
    return {**model_json(config), "lacks": missing(config, os.environ)}


def _refuse_foreign_keys(models: Iterable[ModelConfig]) -> None:
    """
    Refuse entries that would bring a key of the site to an address of theirs.

    Whoever writes here has no hold of the environment: any variable but a provider's own needs
    the word of who has (docs/decisions/0013).
    """
    faults = [
        f"{config.name}.api_key_env: {what}"
        for config in models
        if config.api_key_env and (what := _key_fault(config))
    ]
    if faults:
        raise InputError("\n".join(faults))


def _key_fault(config: ModelConfig) -> str:
    variable = config.api_key_env
    if not variable.endswith(KEY_ENDINGS) or variable.startswith(OWN_VARIABLES):
        return f"{variable!r} names no model's key"
    if variable in PROVIDER_KEYS:
        return host_refusal(variable, config.base_url, os.environ)
    return unlisted(variable, config.base_url, os.environ) if config.base_url else ""
