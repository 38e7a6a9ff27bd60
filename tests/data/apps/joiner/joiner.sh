#!/bin/sh
# Writes its two inputs, one after the other, as its output. One is in a folder.
cat shared/map near > out
echo 0 > boinc_finish_called
