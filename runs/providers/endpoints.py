"""Providers that speak the OpenAI protocol under an address of their own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    One provider's public address and what its models take.

    ``base_url_env`` and ``api_key_env`` are the names that the provider's SDK reads. ``listed``
    are the prefixes under which LiteLLM's table has its models.
    """

    base_url: str
    base_url_env: str = ""
    api_key_env: str = ""
    listed: tuple[str, ...] = ()
    json_schema: bool = True
    supports_seed: bool = True
    local: bool = False

    def listed_as(self, upstream: str) -> list[str]:
        """Return the names that the table may have for a model, most specific first."""
        return [f"{prefix}{upstream}" for prefix in self.listed]


_LOCAL_VLLM = Endpoint("http://localhost:8000/v1", "VLLM_BASE_URL", local=True)
_TOGETHER = Endpoint(
    "https://api.together.xyz/v1", "TOGETHER_BASE_URL", "TOGETHER_API_KEY", ("together_ai/",)
)
_LLAMACPP = Endpoint("http://localhost:8080/v1", "LLAMACPP_BASE_URL", local=True)

ENDPOINTS: dict[str, Endpoint] = {
    "openai": Endpoint(
        "https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY", ("openai/", "")
    ),
    "openrouter": Endpoint(
        "https://openrouter.ai/api/v1",
        "OPENROUTER_BASE_URL",
        "OPENROUTER_API_KEY",
        ("openrouter/",),
    ),
    "groq": Endpoint(
        "https://api.groq.com/openai/v1",
        "GROQ_BASE_URL",
        "GROQ_API_KEY",
        ("groq/",),
        json_schema=False,  # Only some of its models can.
    ),
    # Mistral names its seed otherwise and refuses what it doesn't know.
    "mistral": Endpoint(
        "https://api.mistral.ai/v1",
        "MISTRAL_BASE_URL",
        "MISTRAL_API_KEY",
        ("mistral/",),
        supports_seed=False,
    ),
    "together": _TOGETHER,
    "together_ai": _TOGETHER,
    "deepseek": Endpoint(
        "https://api.deepseek.com/v1",
        "DEEPSEEK_BASE_URL",
        "DEEPSEEK_API_KEY",
        ("deepseek/",),
        json_schema=False,
        supports_seed=False,
    ),
    "fireworks_ai": Endpoint(
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_BASE_URL",
        "FIREWORKS_API_KEY",
        ("fireworks_ai/",),
        supports_seed=False,
    ),
    "deepinfra": Endpoint(
        "https://api.deepinfra.com/v1/openai",
        "DEEPINFRA_BASE_URL",
        "DEEPINFRA_API_KEY",
        ("deepinfra/",),
        json_schema=False,
    ),
    "xai": Endpoint("https://api.x.ai/v1", "XAI_BASE_URL", "XAI_API_KEY", ("xai/",)),
    "cerebras": Endpoint(
        "https://api.cerebras.ai/v1", "CEREBRAS_BASE_URL", "CEREBRAS_API_KEY", ("cerebras/",)
    ),
    "ollama": Endpoint("http://localhost:11434/v1", "OLLAMA_BASE_URL", local=True),
    "vllm": _LOCAL_VLLM,
    "hosted_vllm": _LOCAL_VLLM,
    "llamacpp": _LLAMACPP,
    "llama_cpp": _LLAMACPP,
    "lm_studio": Endpoint("http://localhost:1234/v1", "LM_STUDIO_BASE_URL", local=True),
}

#: The key of a provider on the LiteLLM path. Providers that sign requests in other ways (Bedrock,
#: Vertex, SageMaker, Watsonx) are not here: LiteLLM finds their credentials itself.
LITELLM_KEYS: dict[str, str] = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "cohere": "COHERE_API_KEY",
    "cohere_chat": "COHERE_API_KEY",
    "azure": "AZURE_API_KEY",
    "azure_ai": "AZURE_AI_API_KEY",
    "ai21": "AI21_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
    "replicate": "REPLICATE_API_KEY",
    "novita": "NOVITA_API_KEY",
    "nebius": "NEBIUS_API_KEY",
    "databricks": "DATABRICKS_API_KEY",
    "sambanova": "SAMBANOVA_API_KEY",
    "moonshot": "MOONSHOT_API_KEY",
    "dashscope": "DASHSCOPE_API_KEY",
    "hyperbolic": "HYPERBOLIC_API_KEY",
    "nvidia_nim": "NVIDIA_NIM_API_KEY",
}
