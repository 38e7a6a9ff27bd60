# Every target does its own set-up in .venv. Paths are relative: the project's own path may contain spaces.

PY := .venv/bin/python
# pip's cache would be outside the project.
PIP := $(PY) -m pip install -qq --no-cache-dir --disable-pip-version-check
# For tools that only import the settings: addresses nobody connects to, so no embedded server is started.
NO_SERVERS := DATABASE_URL=postgresql://nobody@127.0.0.1:1/none BROKER_URL=redis://127.0.0.1:1/0 CACHE_URL=redis://127.0.0.1:1/1
PRODUCTION := SITE_URL=https://portal.example.org/ SECRET_KEY=lint-only-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJ EMAIL_URL=smtp+tls://mail.example.org:587 BEHIND_PROXY=1 DEMO=no SILENCED_SYSTEM_CHECKS=cobblestone.W011,cobblestone.W013

# Some machines forbid this. The tests start hundreds of processes, and each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test unit nightly lint audit release bench soak faults fuzz long lock shell psql clean

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## */\1\t/p' Makefile | expand -t 8

run: .venv/emulator  ## run the site: PORT=8000, data below VAR_DIR=var
	@exec $(PY) -I -S portal/dev/parent_death.py 15 $$PPID $(PY) -m portal.dev.run

# Four processes on two cores: some tests wait for a real client most of the time.
test: .venv/development .venv/emulator  ## run all tests; ARGS= go to pytest
	@NUMBA_CACHE_DIR=$(CURDIR)/var/emulator_kernel $(PY) -m emulator.runs.kernel_build
	@$(PY) -m pytest -n 4 --dist worksteal $(ARGS)

unit: .venv/development  ## run the tests that start nothing and commit nothing
	@$(PY) -m pytest -n 2 -m "unit and not long and not nightly" $(ARGS)

nightly: .venv/development  ## run what needs system packages beyond Chromium and the BOINC client, and all looks of the pages
	@$(PY) -m pytest -n 2 -m nightly $(ARGS)

lint: .venv/development  ## check style, types, import arrows, templates, migrations, translations, settings
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(NO_SERVERS) .venv/bin/lint-imports --no-logo
	@$(NO_SERVERS) $(PY) -m mypy
	@$(PY) -m djlint templates extras --lint --quiet
	@$(PY) manage.py makemigrations --check --dry-run
	@$(PY) manage.py lintmigrations --quiet ignore ok
	@$(NO_SERVERS) $(PY) manage.py check_catalogues
	@$(PRODUCTION) $(PY) manage.py check --deploy --fail-level WARNING

# Its faults end up in the report, or there is none: the next program says which.
audit: .venv/development  ## look up known faults of all packages in the lock
	@$(PY) -m pip_audit --requirement requirements.txt --require-hashes --disable-pip --format json 2>/dev/null | $(PY) -m portal.dev.advisories

release: .venv/runtime  ## write the sources of HEAD, their bill of materials (CycloneDX) and digests into DIST=dist
	@$(PY) -m portal.dev.release $(or $(DIST),dist)

bench: .venv/development .venv/emulator  ## measure, and write var/bench.json; ONLY=name measures one
	@$(PY) manage.py bench $(if $(ONLY),--only $(ONLY))

soak: .venv/development  ## 20 minutes of 80 % of full load with 2,000 slow connections, pages, validations and exports; then an export and an import of 3,000,000 records; then an hour of a real client beside its emulation; SOAK_SECS= SOAK_SHARE= SOAK_CONCURRENCY= EXPORT_USERS= EMULATION_SECS=
	@$(PY) manage.py bench --only soak
	@$(PY) manage.py bench --only export
	@$(PY) manage.py bench --only import
	@EMULATION_SECS=$${EMULATION_SECS:-3600} $(PY) -m pytest -n 0 -rP tests/e2e/test_beside_emulation.py

faults: .venv/development  ## 100,000 requests while servers are killed, each fault of several machines, 10,000 simulated schedules of faults, 60 orders of statements of each scene; LEADER_KILLS=20
	@FAULT_REQUESTS=$${FAULT_REQUESTS:-100000} $(PY) -m pytest -n 0 tests/e2e/test_exactly_once.py $(ARGS)
	@SIMULATION_SEEDS=$${SIMULATION_SEEDS:-10000} $(PY) -m pytest -n 2 tests/portal/clients/test_simulation.py $(ARGS)
	@INTERLEAVINGS=$${INTERLEAVINGS:-60} $(PY) -m pytest -n 2 tests/isolation $(ARGS)
	@$(PY) -m pytest -n 0 -m nightly -o log_cli=true -o log_cli_level=WARNING tests/e2e/test_cluster.py $(ARGS)

fuzz: .venv/development  ## ten million inputs for all parsers, led by what they reach (FUZZ_RUNS= FUZZ_SECS=); a million mutated requests (FUZZ_REQUESTS= of each of ten seeds); 500 requests to each operation of the REST API (API_EXAMPLES=)
	@$(PY) -m tools.fuzzing $(if $(FUZZ_SECS),--secs $(FUZZ_SECS),--runs $(or $(FUZZ_RUNS),10000000))
	@$(if $(FUZZ_SECS),:,FUZZ_REQUESTS=$${FUZZ_REQUESTS:-100000} $(PY) -m pytest -n 2 tests/accounting/wire/test_requests_generated.py $(ARGS))
	@$(if $(FUZZ_SECS),:,API_EXAMPLES=$${API_EXAMPLES:-500} $(PY) -m pytest -n 2 tests/portal/rest/test_rest_schema.py $(ARGS))

long: .venv/development  ## the tests that make test leaves out: goals of credit on more populations, and other long forms
	@$(PY) -m pytest -n 2 -m long $(ARGS)

lock: .venv/development  ## write requirements*.txt again from requirements*.in: all packages, with hashes; ARGS=--upgrade
	@for name in requirements requirements-emulator requirements-dev; do \
	  .venv/bin/uv pip compile --quiet --no-cache --no-header --universal --python-version 3.11 --generate-hashes \
	    $(ARGS) $$name.in --output-file $$name.txt || exit 1; \
	done

shell: .venv/runtime  ## a Python shell with the site loaded
	@$(PY) manage.py shell

psql: .venv/runtime  ## a psql session with the site's database
	@PSQL_HISTORY="$${VAR_DIR:-var}/.psql_history" PATH="$$($(PY) -c 'from portal.dev import embedded; print(embedded.programs("postgres"))'):$$PATH" $(PY) manage.py dbshell

clean:  ## remove what the targets above made, but for the data below var/
	rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './var/*' -prune -exec rm -rf {} +

# An environment that is there and works is kept: somebody may be using it. The distribution's Python comes first, as it is
# built with a profile, and serves a fifth more clients than a plainly built one; PYTHON names another.
.venv/made:
	@if .venv/bin/python -m pip --version >/dev/null 2>&1; then touch $@ && exit 0; fi; \
	for python in $(or $(PYTHON),/usr/bin/python3.11 python3.11 python3.12 python3.13 python3); do \
	  if "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "Making .venv with $$python…"; \
	    "$$python" -m venv .venv && touch $@ && exit 0; \
	    echo "$$python could not make .venv." >&2; exit 1; \
	  fi; \
	done; echo "Python 3.11 or newer with its venv is needed$(if $(PYTHON),; $(PYTHON) is none) (on Debian: apt install python3 python3-venv)." >&2; exit 1

.venv/runtime: .venv/made requirements.txt
	@echo "Installing what requirements.txt names…"
	@$(PIP) --require-hashes -r requirements.txt
	@touch $@

# The site runs without; its emulator is slower then.
.venv/emulator: .venv/runtime requirements-emulator.txt
	@echo "Installing what requirements-emulator.txt names…"
	@$(PIP) --require-hashes -r requirements-emulator.txt
	@touch $@

.venv/development: .venv/runtime requirements-dev.txt
	@echo "Installing what requirements-dev.txt names…"
	@$(PIP) --require-hashes -r requirements-dev.txt
	@touch $@
