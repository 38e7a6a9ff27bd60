#!/bin/sh
# A job that fails with a code of its own.
echo "no such glacier" >&2
exit 3
