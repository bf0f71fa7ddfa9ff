# One image for web, workers and beat; docker-compose.yml says which command each runs.
FROM python:3.13-slim

ENV PYTHONUNBUFFERED=1
WORKDIR /app
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes --no-deps --only-binary :all: -r requirements.lock
COPY manage.py pyproject.toml ./
COPY debateweb debateweb
COPY runs runs
COPY audits audits
COPY templates templates
COPY static static
RUN useradd --system --create-home debateweb && install -d -o debateweb -m 0700 /data
USER debateweb
ENV DEBATEWEB_DATA_DIR=/data/debateweb DEBATEWEB_ENV=production DEBATEWEB_HOST=0.0.0.0
EXPOSE 8000
