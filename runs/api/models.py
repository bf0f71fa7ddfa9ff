"""The workspace's models: addresses, prices, limits. Keys stay in the environment."""

from __future__ import annotations

import os
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
from runs.providers.catalog import ModelConfig, missing, resolve
from runs.providers.errors import ModelSpecError, UnknownModelError
from runs.providers.models_yaml import load_models_yaml
from runs.schemas import CheckedModelOut, ImportedModelsOut, ModelsOut
from runs.services.models_table import import_models, table_of

KEY_ENDINGS = ("_API_KEY", "_TOKEN", "_KEY")
#: Secrets of this site, which no model's key may be taken from.
OWN_VARIABLES = ("DEBATEWEB_", "DATABASE", "REDIS", "DJANGO")

router = Router(tags=["models"])


@router.get("/models", response={200: ModelsOut, **REFUSALS})
def list_models(request: HttpRequest, workspace: In) -> dict[str, Any]:
    """List the workspace's table of models."""
    table = table_of(workspace_to_read(request, workspace))
    return {"items": [_model_json(config) for config in table.values()]}


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
    _refuse_own_secrets(models.values())
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
    try:
        config = resolve(model, table_of(place), os.environ)
    except (UnknownModelError, ModelSpecError) as exc:
        raise InputError(f"model: {exc}") from exc
    return {**_model_json(config), "lacks": missing(config, os.environ)}


def _refuse_own_secrets(models: Any) -> None:
    """A key goes to the model's address: it must not be another secret of the machine."""
    faults = [
        f"{config.name}.api_key_env: {config.api_key_env!r} names no model's key"
        for config in models
        if config.api_key_env
        and (
            not config.api_key_env.endswith(KEY_ENDINGS)
            or config.api_key_env.startswith(OWN_VARIABLES)
        )
    ]
    if faults:
        raise InputError("\n".join(faults))


def _model_json(config: ModelConfig) -> dict[str, Any]:
    price = config.price
    return {
        "name": config.name,
        "path": config.path,
        "base_url": config.base_url,
        "api_key_env": config.api_key_env,
        "input_microusd_per_mtok": price.input_microusd_per_mtok if price else None,
        "output_microusd_per_mtok": price.output_microusd_per_mtok if price else None,
        "max_concurrency": config.max_concurrency,
    }
