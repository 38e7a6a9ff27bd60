"""A submitter with a key, an app with templates, and temporary folders."""

from __future__ import annotations

import pytest

from credit.models import App
from extras.remote_jobs import keys
from extras.remote_jobs.models import JobTemplate
from portal.models import User
from scheduler.models import Submitter
from tests.scheduler.conftest import code_key_folder, project_folders
from tests.support.credit_factories import make_app

__all__ = ["code_key_folder", "project_folders"]

INPUT_TEMPLATE = """<file_info/>
<file_info><physical_name>#table@home</physical_name><sticky/></file_info>
<workunit>
  <file_ref><open_name>in</open_name><copy_file/></file_ref>
  <file_ref><open_name>data/table</open_name></file_ref>
  <rsc_fpops_est>2e12</rsc_fpops_est>
  <min_quorum>2</min_quorum>
</workunit>
"""
OUTPUT_TEMPLATE = """<output_template>
<file_info>
  <name><OUTFILE_0/></name><generated_locally/><upload_when_present/><max_nbytes>1000</max_nbytes><url><UPLOAD_URL/></url>
</file_info>
<file_info>
  <name><OUTFILE_1/></name><generated_locally/><upload_when_present/><max_nbytes>9</max_nbytes><url><UPLOAD_URL/></url>
</file_info>
<result>
  <file_ref><file_name><OUTFILE_0/></file_name><open_name>out</open_name></file_ref>
  <file_ref><file_name><OUTFILE_1/></file_name><open_name>log</open_name><optional/></file_ref>
</result>
</output_template>
"""


@pytest.fixture
def app(db: None) -> App:
    """An app of two inputs, one of them the same for all jobs, and two outputs."""
    app = make_app("fold")
    JobTemplate.objects.create(app=app, kind="in", name="fold_in", text=INPUT_TEMPLATE)
    JobTemplate.objects.create(app=app, kind="out", name="fold_out", text=OUTPUT_TEMPLATE)
    return app


@pytest.fixture
def key(submitter: User, app: App) -> str:
    Submitter.objects.create(user=submitter, max_priority=7)
    return keys.issue(submitter, name="test", apps=[app], lifetime=None)
