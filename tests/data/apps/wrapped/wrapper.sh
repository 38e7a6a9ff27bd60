#!/bin/sh
# Starts the program that computes, in the folder where its files are.
(cd shared && ../count.sh "$@") || exit
echo 0 > boinc_finish_called
