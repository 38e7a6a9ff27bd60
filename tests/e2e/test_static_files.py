"""Static files during an upgrade: two machines behind Debian's nginx, each with files that the other does not have."""

from __future__ import annotations

import shutil
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest

from tests.support.nginx_deployment import Deployment

pytestmark = pytest.mark.django_db(transaction=True)


def _machine(name: str, prepared: Path, folder: Path) -> Deployment:
    var_dir = folder / name
    shutil.copytree(prepared, var_dir)
    (var_dir / "static" / f"of_{name}.css").write_text(f"/* {name} */")
    (folder / f"{name}-deployment").mkdir()
    return Deployment(var_dir, folder / f"{name}-deployment")


@pytest.mark.usefixtures("nginx")
def test_a_file_of_either_version_is_found_whichever_machine_is_asked(site_var_dir: Path, tmp_path: Path) -> None:
    old, new = (_machine(name, site_var_dir, tmp_path) for name in ("old", "new"))
    config = tmp_path / "new-deployment" / "site.conf"
    first, second = (f"server {each.web.url[7:-1]};" for each in (new, old))
    text = config.read_text()
    assert first in text
    config.write_text(text.replace(first, f"{first} {second}"))
    with old.web, new:
        # Alone, a machine knows its own file.
        assert _asked(f"{old.web.url}static/of_old.css") == (200, "/* old */")
        assert _asked(f"{old.web.url}static/of_new.css")[0] == 404
        # nginx asks them in turn: twice the same file is asked first of one, then of the other.
        for name in ("old", "old", "new", "new"):
            assert _asked(f"{new.url}static/of_{name}.css") == (200, f"/* {name} */")
        assert _asked(f"{new.url}static/of_nobody.css")[0] == 404


def _asked(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as error:
        with error:
            return error.code, ""
