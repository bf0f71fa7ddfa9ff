"""The services that debateweb needs and can run itself: PostgreSQL, Valkey, workers and web."""
