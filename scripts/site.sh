#!/usr/bin/env bash
# Builds the site of the documentation, and checks the templates for CI by their schemas, in a Python environment of its
# own. Usage: scripts/site.sh DIR
# Exit status 75 (EX_TEMPFAIL): this machine cannot make that environment.
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/site"
export NO_MKDOCS_2_WARNING=1 # that its next version will differ
export PYTHONDONTWRITEBYTECODE=1

# The environment is kept until a version changes.
env=${XDG_CACHE_HOME:-$HOME/.cache}/perfmq/site-$(sha256sum requirements.txt | cut -c 1-12)
if [ ! -e "$env/complete" ]; then
	python3 -m venv --clear "$env" && "$env/bin/pip" install --quiet --requirement requirements.txt || {
		echo "site: not built, this machine cannot install its tools" >&2
		echo "hint: it takes Python 3.10 or later (Debian: apt-get install python3-venv) and a package index" >&2
		exit 75
	}
	touch "$env/complete"
fi
"$env/bin/mkdocs" build --strict --site-dir "$out"
for of in github-workflows:github gitlab-ci:gitlab; do
	"$env/bin/check-jsonschema" --builtin-schema "vendor.${of%:*}" "../../deploy/ci/${of#*:}.yml"
done
