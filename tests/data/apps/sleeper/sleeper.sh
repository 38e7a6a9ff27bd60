#!/bin/sh
# A job that lasts until somebody aborts it.
sleep 600
