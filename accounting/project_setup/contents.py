"""A project's subjects and programs, written row by row, so that each change is audited as a change of one row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from accounting.models import PROCESSOR_TYPES, Project, ProjectKeyword, ProjectVersion
from portal.wire import keywords as choice_keywords


def set_versions(project: Project, versions: Iterable[tuple[str, str]]) -> bool:
    """Set the platforms and processor types of the project; return whether anything changed."""
    present = {(platform, type_) for platform, type_ in versions if type_ in PROCESSOR_TYPES}
    there = {(row.platform, row.processor_type): row for row in project.versions.all()}
    for key in there.keys() - present:
        there[key].delete()
    for platform, type_ in sorted(present - there.keys()):
        ProjectVersion.objects.create(project=project, platform=platform, processor_type=type_)
    return present != there.keys()


def set_keywords(project: Project, weights: Mapping[int, float]) -> bool:
    """Set the keywords of the project, leaving out those unknown to BOINC; return whether anything changed."""
    present = {id_: weights[id_] for id_ in choice_keywords.known(weights)}
    there = {row.keyword: row for row in project.keywords.all()}
    for id_ in there.keys() - present.keys():
        there[id_].delete()
    for id_, weight in present.items():
        row = there.get(id_) or ProjectKeyword(project=project, keyword=id_)
        if row.pk is None or row.weight != weight:
            row.weight = weight
            row.save()
    return present != {id_: row.weight for id_, row in there.items()}
