"""The pages of a run whose answer a judge decided."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from django.urls import reverse

from debateweb.models import Role, Workspace
from tests.debateweb.people import member, signed_in
from tests.runs import factories
from tests.runs.services.test_judges import experiment, gateway, judged_by, names


@pytest.mark.django_db
def test_a_judged_run_shows_its_answer_and_what_its_judge_was_shown(tmp_path: Path) -> None:
    home = Workspace.objects.create(name="home")
    with patch("runs.dispatch.current_app"):
        made = factories.finish(
            experiment(tmp_path, judged_by(), in_workspace=home), gateway(names("2"))
        )
    reader, run = signed_in(member(home, Role.READER)), made.runs.get()
    page = reader.get(reverse("runs:run", args=["home", run.pk]))
    assert page.status_code == 200
    assert "judge:1" in page.content.decode()
    cell = reader.get(reverse("runs:run_cell", args=["home", run.pk, 1, "judge:1"]))
    assert cell.status_code == 200
    assert "They are equally good" in cell.content.decode()
