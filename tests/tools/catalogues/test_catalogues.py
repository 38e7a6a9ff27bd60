"""Texts get into catalogues, and from there onto pages."""

from __future__ import annotations

import gettext
import re
from pathlib import Path

import pytest
from django.conf import settings

from portal.languages.compiling import ROOT, compile_stale
from portal.languages.sources import APPS, DOMAINS, Catalogue, places
from tools.catalogues.catalogues import CatalogueError, update
from tools.catalogues.problems import problems

PAGES = Catalogue("credit", "django")
GERMAN = ("de",)


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def catalogue(root: Path, place: Catalogue = PAGES) -> str:
    update(root, places(), GERMAN)
    return place.path(root, "de").read_text()


def fill(root: Path, *translations: str, place: Catalogue = PAGES) -> None:
    """Translate the entries of the catalogue, one after the other."""
    text = catalogue(root, place)
    for translation in translations:
        before, after = _split(text)
        text = f'{before} "{translation}"\n{after}'
    place.path(root, "de").write_text(text)


def _split(text: str) -> tuple[str, str]:
    """The text around the first empty translation below the header."""
    head, _, body = text.partition("\n\n")
    for form in ('msgstr ""\n', 'msgstr[0] ""\n', 'msgstr[1] ""\n'):
        if form in body:
            before, _, after = body.partition(form)
            return f"{head}\n\n{before}{form[:-4]}", after
    raise AssertionError("all are translated")


def test_all_texts_of_the_site_are_translated() -> None:
    assert problems(ROOT, places(), settings.TRANSLATIONS) == []


def test_modules_templates_and_scripts_of_an_app_have_its_catalogues(tmp_path: Path) -> None:
    write(tmp_path, "credit/pages/texts.py", 'title = _("Credit")\nmore = ngettext("%(n)s day", "%(n)s days", n)\n')
    write(tmp_path, "credit/migrations/0001_a.py", 'old = _("Once")\n')
    write(
        tmp_path,
        "templates/credit/task.html",
        '   {% translate "What it\'s worth" %}\n{# Translators: of a task #}\n'
        " {% blocktranslate trimmed count n=n %}\n  one of {{ all }}\n {% plural %}\n {{ n }} of {{ all }}\n"
        ' {% endblocktranslate %}{% menu_link "a" _("About") %}',
    )
    write(tmp_path, "static/credit/preview.js", 'show(gettext("Working…"));\n')
    pages = catalogue(tmp_path)
    for text in ("Credit", "%(n)s day", "%(n)s days", "What it's worth", "one of %(all)s", "%(n)s of %(all)s", "About"):
        assert f'"{text}"' in pages
    assert "Translators: of a task" in pages
    assert "Once" not in pages and "Working" not in pages
    assert '"Working…"' in catalogue(tmp_path, Catalogue("credit", "djangojs"))


def test_spanish_and_french_have_what_volunteers_see(tmp_path: Path) -> None:
    write(tmp_path, "credit/pages/texts.py", 'title = _("Credit of a task")\n')
    write(tmp_path, "credit/admin.py", 'title = _("Reset averages")\n')
    write(
        tmp_path,
        "credit/models/apps.py",
        'class State(models.TextChoices):\n    OVER = "over", _("Over")\n\n\n'
        'class App(models.Model):\n    name = models.TextField(_("full name"))\n',
    )
    write(tmp_path, "templates/admin/page.html", '{% translate "Stuck" %}')
    update(tmp_path, places(), ("de", "fr"))
    german = {text for place in places() for text in texts_of(place.path(tmp_path, "de"))}
    french = {text for place in places() for text in texts_of(place.path(tmp_path, "fr"))}
    assert german == {"Credit of a task", "Reset averages", "Over", "full name", "Stuck"}
    assert french == {"Credit of a task", "Over"}


def texts_of(path: Path) -> list[str]:
    return re.findall(r'^msgid "(.+)"$', path.read_text(), re.MULTILINE) if path.exists() else []


def test_templates_and_scripts_of_no_app_are_the_portals(tmp_path: Path) -> None:
    write(tmp_path, "templates/base.html", '{% translate "Skip to the content" %}')
    write(tmp_path, "templates/account/login.html", '{% translate "Sign in" %}')
    text = catalogue(tmp_path, Catalogue("portal", "django"))
    assert "Skip to the content" in text and "Sign in" in text


def test_a_file_does_not_change_when_lines_move_or_with_time(tmp_path: Path) -> None:
    path = write(tmp_path, "credit/texts.py", 'a = _("B")\nb = _("A")\n')
    first = catalogue(tmp_path)
    path.write_text('\n\n\nb = _("A")\na = _("B")\n')
    assert catalogue(tmp_path) == first
    assert first.index('msgid "A"') < first.index('msgid "B"')


def test_translations_are_kept_and_those_of_texts_that_are_gone_are_removed(tmp_path: Path) -> None:
    path = write(tmp_path, "credit/texts.py", 'a = _("Home")\nb = _("Away")\n')
    fill(tmp_path, "Fort", "Start")
    path.write_text('a = _("Home")\n')
    text = catalogue(tmp_path)
    assert '"Start"' in text and "Away" not in text and "Fort" not in text
    path.unlink()
    assert PAGES.path(tmp_path, "de") in update(tmp_path, places(), GERMAN)
    assert not PAGES.path(tmp_path, "de").exists()


def test_a_text_gets_the_translation_of_another_app(tmp_path: Path) -> None:
    write(tmp_path, "credit/texts.py", 'a = _("Home")\n')
    fill(tmp_path, "Start")
    write(tmp_path, "emulator/texts.py", 'a = _("Home")\n')
    assert '"Start"' in catalogue(tmp_path, Catalogue("emulator", "django"))


def test_two_translations_of_one_text_are_found(tmp_path: Path) -> None:
    write(tmp_path, "credit/texts.py", 'a = _("Home")\n')
    fill(tmp_path, "Start")
    write(tmp_path, "emulator/texts.py", 'a = _("Home")\n')
    path = Catalogue("emulator", "django").path(tmp_path, "de")
    path.write_text(catalogue(tmp_path, Catalogue("emulator", "django")).replace("Start", "Heim"))
    assert problems(tmp_path, places(), GERMAN) == [
        "emulator/locale/de/LC_MESSAGES/django.po: 'Home' is translated differently in "
        "credit/locale/de/LC_MESSAGES/django.po."
    ]


@pytest.mark.parametrize(
    ("source", "translations", "problem"),
    [
        ('_("Home")', [], "'Home' has no translation."),
        ('_("%(n)s of %(all)s")', ["%(n)s von"], "'%(n)s von' lacks %(all)s, unlike '%(n)s of %(all)s'."),
        ('_("%(n)s")', ["%(n)s, %(m)s"], "'%(n)s, %(m)s' has %(m)s, unlike '%(n)s'."),
        ('_("{name} left")', ["ist fort"], "'ist fort' lacks {name}, unlike '{name} left'."),
        ('_("%s, %s")', ["%s"], "'%s' has another number of %s, unlike '%s, %s'."),
        ("_(\"<a href='x'>Go</a>\")", ["<b>Los</b>"], "'<b>Los</b>' has other tags, unlike \"<a href='x'>Go</a>\"."),
        ('ngettext("one", "%(n)s", n)', ["einer", "%(m)s"], "'%(m)s' has %(m)s, unlike '%(n)s'."),
        (
            '_("1\u202f000 jobs")',
            ["1.000 Jobs"],
            "'1.000 Jobs' has a number whose thousands are not separated by a narrow space.",
        ),
        ('_("Enter it.")', ["Geben Sie es ein."], "'Geben Sie es ein.' says “Sie” or “Ihr”; the site says “du”."),
        ('_("They are off. Enter it.")', ["Sie sind aus. Gib es ein."], ""),
        ('_("Version 8.2.100, 1 000 jobs")', ["Version 8.2.100, 1\u202f000 Jobs, 0,125"], ""),
        ('_("50%% of %(n)s")', ["50%% von %(n)s"], ""),
        ('ngettext("one", "%(n)s", n)', ["einer", "%(n)s"], ""),
    ],
)
def test_what_would_break_a_page_is_found(tmp_path: Path, source: str, translations: list[str], problem: str) -> None:
    write(tmp_path, "credit/texts.py", f"a = {source}\n")
    fill(tmp_path, *translations)
    assert [each.partition(": ")[2] for each in problems(tmp_path, places(), GERMAN)] == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("translation", "n_faults"),
    [("Vraiment ?", 1), ("Vraiment\u202f?", 0), ("« Vraiment »", 1), ("«\xa0Vraiment\xa0»", 0), ("Avec ?xml=1", 0)],
)
def test_signs_stay_with_their_words_in_french(tmp_path: Path, translation: str, n_faults: int) -> None:
    write(tmp_path, "credit/texts.py", 'a = _("Really?")\n')
    update(tmp_path, places(), ["fr"])
    file = PAGES.path(tmp_path, "fr")
    before, after = _split(file.read_text())
    file.write_text(f'{before} "{translation}"\n{after}')
    faults = [fault for fault in problems(tmp_path, places(), ["fr"]) if "at the end of a line" in fault]
    assert len(faults) == n_faults


def test_a_new_text_a_fuzzy_and_an_obsolete_one_are_found(tmp_path: Path) -> None:
    write(tmp_path, "credit/texts.py", 'a = _("Home")\n')
    fill(tmp_path, "Start")
    path = PAGES.path(tmp_path, "de")
    path.write_text(path.read_text().replace("msgid", "#, fuzzy\nmsgid", 2) + '\n#~ msgid "Away"\n#~ msgstr "Fort"\n')
    write(tmp_path, "credit/more_texts.py", 'a = _("New")\n')
    found = "\n".join(problems(tmp_path, [PAGES], GERMAN))
    assert "is not up to date" in found and "'Home' is fuzzy" in found and "'Away' is obsolete" in found


def test_a_file_with_the_marks_of_a_conflict_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, "credit/texts.py", 'a = _("Home")\n')
    path = PAGES.path(tmp_path, "de")
    path.parent.mkdir(parents=True)
    path.write_text("<<<<<<< HEAD\n" + 'msgid "Home"\nmsgstr "Start"\n')
    with pytest.raises(CatalogueError, match=r"django\.po cannot be read"):
        update(tmp_path, places(), GERMAN)


def test_compiled_catalogues_follow_their_sources(tmp_path: Path) -> None:
    write(tmp_path, "credit/texts.py", 'a = _("Home")\n')
    fill(tmp_path, "Start")
    source = PAGES.path(tmp_path, "de")
    compiled = source.with_suffix(".mo")
    assert compile_stale(tmp_path) == [compiled]
    with compiled.open("rb") as file:
        assert gettext.GNUTranslations(file).gettext("Home") == "Start"
    assert compile_stale(tmp_path) == []
    source.unlink()
    assert compile_stale(tmp_path) == [compiled]
    assert not compiled.exists()


def test_a_compiled_catalogue_has_nothing_of_the_time_of_compiling(tmp_path: Path) -> None:
    write(tmp_path, "credit/texts.py", 'a = _("Home")\n')
    fill(tmp_path, "Start")
    with compile_stale(tmp_path)[0].open("rb") as file:
        header = gettext.GNUTranslations(file).info()
    assert [value for name, value in header.items() if "date" in name] == [
        "1970-01-01 00:00+0000",
        "YEAR-MO-DA HO:MI+ZONE",
    ]


def test_there_is_a_place_for_each_app_and_domain() -> None:
    assert len(places()) == len(APPS) * len(DOMAINS)
    assert all((ROOT / app / "apps.py").exists() for app in APPS)
